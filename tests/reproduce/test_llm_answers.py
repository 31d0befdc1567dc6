"""The script behind the page on evaluations of language models."""

import numpy as np

from reproduce import llm_answers


def made():
    rng = np.random.default_rng(0)
    n, models = 240, len(llm_answers.MODELS)
    question, model = np.tile(np.arange(n), models), np.repeat(np.arange(models), n)
    sure = rng.uniform(0.4, 1.0, n * models)
    correct = (rng.random(n * models) < sure - 0.2).astype(np.uint8)
    correct[3] = llm_answers.UNKNOWN
    zeros = np.zeros(n * models, np.uint8)
    return {"conf": sure, "correct": correct, "dataset": zeros, "model": model, "prompt": zeros, "question": question,
            "dataset_names": np.array(["arc"]), "model_names": np.array(llm_answers.MODELS)}  # fmt: skip


def test_models_are_paired_on_the_questions_that_both_answered():
    kept = made()
    a, b = llm_answers.pair(kept, "arc", llm_answers.MODELS[0], llm_answers.MODELS[1])
    assert len(a) == len(b) == 239
    np.testing.assert_array_equal(b.confidence, np.delete(kept["conf"][240:480], 3))


def test_the_page_has_every_model():
    page = llm_answers.page(made())
    assert "above accuracy in 4 of 4 pairs" in page
    assert page.count("| arc |") == 4 + 3 * 2


def test_without_the_data_nothing_is_written(monkeypatch):
    monkeypatch.setattr(llm_answers, "folder", lambda _: None)
    assert llm_answers.main() == ""
