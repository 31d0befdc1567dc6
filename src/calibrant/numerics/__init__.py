"""Arrays in, arrays out: row kernels, sorting, isotonic fits, logistic fits, smoothers, quadrature.

Here belongs mathematics that several rooms share. Whatever knows a task, a table or a class of ours does not.
"""

#: Nothing is public; other rooms import from the modules.
__all__: list[str] = []
