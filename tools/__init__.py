"""Scripts for developers: which tests a change needs, how long tests take, and which mutants they miss."""
