"""Contents written down by hand, for tests of figures and pages: no estimator is needed to draw them."""

import math
from itertools import pairwise

from calibrant.reporting.contents import (
    Band,
    Bin,
    BinCounts,
    Change,
    Classes,
    Contents,
    Coverage,
    Curve,
    Facts,
    GroupRow,
    Groups,
    MapRow,
    Number,
    Omitted,
    OverTime,
    Period,
    Recalibration,
    Reliability,
    Shares,
    Spread,
    SpreadBin,
    Threshold,
    Verdict,
)
from calibrant.results.estimate import Significance, Value

HOSTILE = "<img src=x onerror=alert(1)>&\"'"


def logit(p):
    return math.log(p / (1 - p))


def expit(z):
    return 1 / (1 + math.exp(-z))


def truth(p, slope=0.8, shift=-0.7):
    """The true probability behind a prediction: too extreme and too high."""
    return expit(shift + slope * logit(p))


def share(rate, n):
    half = 1.96 * math.sqrt(rate * (1 - rate) / n)
    return Value(rate, max(rate - half, 0.0), min(rate + half, 1.0))


def score_bin(low, high, n, share_=None, of=truth):
    middle = expit((logit(max(low, 1e-4)) + logit(min(high, 0.9))) / 2)
    rate = of(middle)
    return Bin(low, high, n, round(n * rate), middle, share(rate, n), share_)


def curve(of=truth, *, confidence=True):
    edges = [expit(-8 + 0.35 * k) for k in range(30)]
    rates = [of((low + high) / 2) for low, high in pairwise(edges)]
    band = None
    if confidence:
        grid = [expit(-8 + 0.1 * k) for k in range(100)]
        band = Band(tuple(grid), tuple(of(p) * 0.75 for p in grid), tuple(min(of(p) * 1.35, 1.0) for p in grid))
    return Curve(tuple(edges[:-1]), tuple(edges[1:]), tuple(rates), band)


def reliability(*, threshold=True, of=truth):
    edges = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7]
    sizes = [1200, 1900, 2900, 3100, 3000, 2800, 1500, 800, 500, 200, 60]
    bins = tuple(score_bin(low, high, n, of=of) for (low, high), n in zip(pairwise(edges), sizes, strict=True))
    linear = tuple(score_bin(k / 10, (k + 1) / 10, max(14000 >> (2 * k), 20), of=of) for k in range(8))
    grid = [expit(-7.5 + 0.1 * k) for k in range(85)]
    consistency = Band(tuple(grid), tuple(p * 0.8 for p in grid), tuple(min(p * 1.25, 1.0) for p in grid))
    bars = tuple(
        (expit(-8 + 0.25 * k), expit(-7.75 + 0.25 * k), 1000 * math.exp(-(((k - 13) / 7) ** 2))) for k in range(36)
    )
    even = tuple((k / 40, (k + 1) / 40, 15000 * math.exp(-0.9 * k)) for k in range(34))
    parts = [(0.0, 0.002, 4574, 0.03), (0.002, 0.01, 6078, 0.07), (0.01, 0.05, 5791, 0.03), (0.05, 0.2, 2744, 0.21)]
    ranges = tuple(score_bin(*part, of=of) for part in [*parts, (0.2, 1.0, 813, 0.66)])
    rows = Threshold(0.1, score_bin(0.08, 0.125, 700, of=of), score_bin(0.1, 1.0, 1904, of=of)) if threshold else None
    return Reliability(
        curve(of),
        consistency,
        {"log odds": bins, "linear": linear},
        {"log odds": bars, "linear": even},
        ranges,
        "log odds",
        threshold=rows,
    )


MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]


def over_time(*, change=True):
    periods = []
    for k, month in enumerate(MONTHS):
        late = change and k >= 8
        ratio = (0.56 if late else 0.97) + 0.05 * math.sin(3 * k)
        value = Value(ratio, ratio * 0.72, ratio * 1.36)
        p_value = 0.0004 if late else 0.62
        periods.append(Period(f"{month} 2025", 1660, round(61 * ratio), 61.0, value, (0.76, 1.26), p_value, late))
    found = Change(8, Value(0.97, 0.89, 1.06), Value(0.56, 0.47, 0.66), 0.001, significant=True) if change else None
    return OverTime("month", tuple(periods), found)


COUNTRIES = [
    ("Poland", 0.64, 1558, "too high"),
    ("Italy", 0.71, 2396, "too high"),
    ("France", 0.76, 3455, "too high"),
    ("United Kingdom", 0.78, 1806, "not flagged"),
    ("Germany", 0.8, 4873, "too high"),
    ("Sweden", 0.83, 962, "not flagged"),
    ("Netherlands", 0.87, 1826, "too extreme"),
    ("Spain", 1.0, 2534, "too extreme"),
    ("Brazil", 1.84, 590, "too low"),
]


def group_row(name, ratio, n, direction):
    expected = 0.0366 * n
    half = 1.96 / math.sqrt(max(ratio * expected, 1))
    flagged = direction != "not flagged"
    error = 0.01 * abs(ratio - 1) + 0.004
    return GroupRow(
        name,
        n,
        Value(ratio, ratio * math.exp(-half), ratio * math.exp(half)),
        Value(error, max(error - 0.006, 0.0), error + 0.007),
        direction,
        0.0007 if flagged else 0.21,
        flagged,
        observed=round(ratio * expected),
        expected=expected,
        flagged_after=name == "Brazil",
    )


def groups(rows=COUNTRIES, column="country"):
    return Groups(column, tuple(group_row(*row) for row in rows))


def recalibration(*, helps=True):
    names = ["Platt scaling", "Spline", "Beta calibration", "Isotonic regression", "Temperature scaling"]
    gains = [0.0169, 0.0167, 0.0165, 0.0111, -0.0001] if helps else [0.002, 0.001, 0.0, -0.01, -0.02]
    maps = []
    for k, (name, gain) in enumerate(zip(names, gains, strict=True)):
        value = Value(gain, gain - 0.008, gain + 0.008)
        clear = value.low > 0
        effect = (
            "best" if clear and k == 0 else "helps" if clear else "makes it worse" if value.high < 0 else "may not help"
        )
        remaining = Value(0.008, 0.005, 0.01) if k == 4 else Value(0.001, 0.0, 0.0029)
        maps.append(MapRow(name, float(k + 1), remaining, value, effect))
    recent = MapRow("Platt scaling", 2.0, Value(0.002, 0.0, 0.006), Value(0.07, 0.04, 0.1), "best") if helps else None
    command = "calibrant recalibrate payments.parquet \\\n    --truth is_fraud --prob score --method Platt -o map.json"
    code = 'from calibrant import recalibrate\nplatt = recalibrate.Platt()\nplatt.fit(df["score"], df["is_fraud"])'
    after = curve(lambda p: expit(0.97 * logit(p)))
    return Recalibration("log loss", 0.1093, tuple(maps), after, command, code, recent)


def bin_counts():
    counts = (2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 50, 100, 150, 200, 500, 1000)
    null = [0.0006 * math.sqrt(n) for n in counts]
    mass = tuple(0.007 + 0.5 * noise + 0.0002 * math.sin(n) for n, noise in zip(counts, null, strict=True))
    width = tuple(0.006 + 0.35 * noise for noise in null)
    low, high = tuple(0.6 * noise for noise in null), tuple(1.1 * noise for noise in null)
    return BinCounts(counts, mass, width, low, high)


BINARY_NUMBERS = (
    Number(
        "Calibration error, L1",
        Value(0.0083, 0.005, 0.0102),
        0.0,
        "points",
        "",
        "larger error",
        "Mean distance between predicted and true probability. The base rate is 3.05 %, so the error is 16 to 33 "
        "% of it.",
    ),
    Number(
        "Calibration slope",
        Value(0.8, 0.75, 0.85),
        1.0,
        "ratio",
        "too extreme",
        "too moderate",
        "Below 1: high scores are too high and low scores too low.",
    ),
    Number(
        "Observed : expected",
        Value(0.83, 0.77, 0.9),
        1.0,
        "ratio",
        "too high",
        "too low",
        "610 events observed, 732 expected from the predictions. Below 1: predictions are too high in total.",
    ),
)
FACTS = Facts(
    20000,
    "payment",
    "fraud",
    610,
    0.0305,
    0.0366,
    period="1 Jan to 31 Dec 2025",
    model="fraud-gbm 4.2",
    source="payments-2025.parquet",
)
BINARY_VERDICT = Verdict(
    "B8",
    "not calibrated",
    "problem",
    "too high",
    "Predicted fraud probabilities are too high: 610 frauds occurred where 732 were predicted, a ratio of 0.83 (95 % "
    "interval 0.77 to 0.90).",
    "The excess began in September 2025. Until August, totals agree (0.97, 0.89 to 1.06); since then, 137 frauds "
    "occurred "
    "where 244 were predicted (0.56, 0.47 to 0.66).",
    "Strong evidence: none of 999 simulated calibrated models deviated as much (p ≤ 0.001). The mean calibration "
    "error is "
    "0.8 percentage points (0.5 to 1.0), 27 % of the base rate.",
    "Of the 1,904 payments above your threshold of 10 %, 16.6 % were fraud (15.0 to 18.3 %); the scores say 23.3 %.",
    "Refit Platt scaling on payments since September: log loss there falls by 7 % (4 to 10 %).",
)


def binary(**changes):
    given = {
        "kind": "binary",
        "facts": FACTS,
        "verdict": BINARY_VERDICT,
        "numbers": BINARY_NUMBERS,
        "sections": (reliability(), over_time(), groups(), recalibration(), bin_counts()),
        "notes": ("**Bands.** The consistency band is pointwise.", "Rows are treated as independent; see `group=`."),
    }
    return Contents(**{**given, **changes})


def hostile():
    """Every text of the user's holds tags and quotes."""
    facts = Facts(500, HOSTILE, HOSTILE, 50, 0.1, 0.12, period=HOSTILE, model=HOSTILE, source=HOSTILE)
    rows = [(f"{HOSTILE} {k}", 0.5 + 0.05 * k, 300, "too high" if k < 5 else "not flagged") for k in range(30)]
    verdict = Verdict("B8", "too few", "caution", None, HOSTILE, HOSTILE, HOSTILE, HOSTILE, HOSTILE)
    periods = tuple(
        Period(HOSTILE, 10, 1, 2.0, Value(0.5, 0.1, 2.0), (0.4, 2.0), 0.5, flagged=False) for _ in range(40)
    )
    return binary(
        facts=facts,
        verdict=verdict,
        sections=(reliability(), OverTime(HOSTILE, periods, None), groups(rows, HOSTILE), recalibration(helps=False)),
        omitted=(Omitted(HOSTILE, HOSTILE),),
        notes=(HOSTILE,),
    )


QUEUES = [
    ("Other", 0.87),
    ("Billing", 0.89),
    ("Delivery", 0.96),
    ("Technical", 0.97),
    ("Account", 1.01),
    ("Returns", 1.12),
    ("Refunds", 1.77),
]


def classes():
    rows = []
    for name, ratio in QUEUES:
        direction = "too high" if ratio < 0.95 else "too low" if ratio > 1.1 else "too extreme"
        value = Value(ratio, ratio * 0.95, ratio * 1.05)
        rows.append(
            GroupRow(
                name,
                9000,
                value,
                Value(0.04, 0.03, 0.05),
                direction,
                0.001,
                flagged=True,
                observed=1285 * ratio,
                expected=1285.0,
            )
        )
    ranges = ((0.0, 0.005), (0.005, 0.02), (0.02, 0.05), (0.05, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 0.95), (0.95, 1.0))
    cells = []
    for name, ratio in QUEUES:
        line = []
        for low, high in ranges:
            p = (low + high) / 2
            n = 12 if name == "Refunds" and low > 0.9 else 400
            rate = min(0.6 * p + 0.03 * ratio, 1)
            line.append((n, n * rate, n * p, n * p * (1 - p)))
        cells.append(tuple(line))
    test = Significance(12.0, 0.005, "Whole vector", 9000)
    return Classes(test, tuple(rows), ranges, tuple(cells), shown=7)


def multiclass():
    facts = Facts(9000, "ticket", "class", base_rate=0.569, mean_prediction=0.715, classes=7, model="router-bert 1.9")
    verdict = Verdict(
        "M1",
        "not calibrated",
        "problem",
        "over-confident",
        "Over-confident: the predicted class is right for 56.9 % of tickets, while the mean confidence is 71.5 "
        "%, a gap of "
        "14.6 percentage points (95 % interval 13.7 to 15.6).",
        "The other probabilities are wrong too: Refunds are 1.77 times as frequent as predicted (1.65 to 1.90).",
        "Strong evidence: none of 199 simulated calibrated models deviated as much (p ≤ 0.005).",
        "Tickets routed with 90 to 95 % confidence are in the right queue 75 % of the time (73 to 78 %).",
        "Vector scaling of all 7 probabilities: cross-validated log loss falls by 12.2 % (11.3 to 13.0 %).",
    )

    def accuracy(p):
        return 0.8 * p

    edges = [0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.0]
    bins = tuple(
        Bin(
            low,
            high,
            1000,
            1000 * accuracy((low + high) / 2),
            (low + high) / 2,
            share(accuracy((low + high) / 2), 1000),
        )
        for low, high in pairwise(edges)
    )
    grid = tuple(0.2 + 0.01 * k for k in range(80))
    band = Band(grid, tuple(0.8 * p - 0.05 for p in grid), tuple(min(0.8 * p + 0.05, 1) for p in grid))
    steps = Curve(grid[:-1:4], grid[4::4], tuple(accuracy(p + 0.02) for p in grid[:-1:4])[: len(grid[4::4])], band)
    steps = Curve(steps.low[: len(steps.high)], steps.high, steps.rate, band)
    null = Band(grid, tuple(p - 0.03 for p in grid), tuple(min(p + 0.03, 1) for p in grid))
    bars = tuple((k / 40, (k + 1) / 40, 10.0 * k) for k in range(8, 40))
    diagram = Reliability(steps, null, {"linear": bins}, {"linear": bars}, (), "linear")
    numbers = (
        Number(
            "Top-label calibration error, L1",
            Value(0.146, 0.137, 0.156),
            0.0,
            "points",
            "",
            "larger error",
            "Mean distance.",
        ),
        Number(
            "Temperature", Value(1.62, 1.57, 1.68), 1.0, "ratio", "too moderate", "too extreme", "Above 1: too extreme."
        ),
        Number("Class-wise calibration error", Value(0.043), 0.0, "points", "", "larger error", "Mean of 7 classes."),
    )
    best = recalibration().maps
    whole = Recalibration(
        "log loss", 1.317, best[:3], command="calibrant recalibrate tickets.parquet --method VectorScaling"
    )
    return Contents("classes", facts, verdict, numbers, (diagram, classes(), whole))


def spread():
    bins = []
    for k in range(14):
        sigma = 2.3 * 1.14**k
        error = sigma * (1.5 - 0.045 * k)
        bins.append(SpreadBin(sigma, 300, Value(error, error * 0.92, error * 1.09), (sigma * 0.92, sigma * 1.08)))
    coverage = tuple(Coverage(k / 20, share(0.92 * k / 20, 4200)) for k in range(1, 20))
    pit = (343.0, 224.0, *(190.0 + 10 * math.sin(k) for k in range(16)), 220.0, 392.0)
    return Spread("EUR/MWh", tuple(bins), coverage, pit, (182.0, 238.0))


def regression():
    facts = Facts(4200, "forecast", "event", period="Jan to Jun 2026", model="ngboost 0.5")
    verdict = Verdict(
        "R1",
        "not calibrated",
        "problem",
        "too narrow",
        "Predicted spread is too narrow: errors are 1.27 times the predicted standard deviation (95 % interval "
        "1.24 to 1.31).",
        how_sure="Strong evidence: the mean squared standardised error differs from 1 (p < 0.001).",
        what_it_means="Intervals meant to hold 90 % of outcomes hold 82.5 % (81.3 to 83.6 %).",
        what_to_do="A spline of the spread lowers cross-validated CRPS by 0.68 % (0.44 to 0.92 %).",
    )
    numbers = (
        Number(
            "Error-to-spread ratio",
            Value(1.27, 1.24, 1.31),
            1.0,
            "ratio",
            "spread too wide",
            "too narrow",
            "Above 1: errors are larger than predicted.",
        ),
        Number(
            "Coverage of 90 % intervals",
            Value(0.825, 0.813, 0.836),
            0.9,
            "percent",
            "too narrow",
            "too wide",
            "Share of outcomes inside.",
        ),
        Number(
            "ENCE, 10 bins",
            Value(0.27),
            0.0,
            "percent",
            "",
            "larger error",
            "A calibrated forecaster would show 4 to 9 %.",
        ),
    )
    leads = [
        ("1 day", 1.5, 1284, "too narrow"),
        ("2 to 3 days", 1.33, 1218, "too narrow"),
        ("4 to 7 days", 1.1, 1035, "too narrow"),
        ("8 to 14 days", 0.86, 663, "too wide"),
    ]
    rows = tuple(
        GroupRow(name, n, Value(r, r * 0.95, r * 1.05), Value(0.2), way, 0.0001, flagged=True)
        for name, r, n, way in leads
    )
    maps = (
        MapRow("Spline of the spread", 5.0, Value(0.01, 0.0, 0.02), Value(0.0068, 0.0044, 0.0092), "best"),
        MapRow(
            "One factor (std scaling)", 1.0, Value(0.02, 0.01, 0.03), Value(-0.005, -0.008, -0.002), "makes it worse"
        ),
    )
    recalibrated = Recalibration(
        "CRPS", 4.03, maps, command="calibrant recalibrate prices.parquet --method SpreadSpline"
    )
    return Contents("regression", facts, verdict, numbers, (spread(), Groups("lead_time", rows), recalibrated))


def shares(*, zero=False):
    priors = tuple(0.11 + 0.01 * k for k in range(17))
    errors = []
    for prior in priors:
        error = 0.032 + 0.6 * max(prior - 0.14, 0.0)
        errors.append(Value(error, 0.0 if zero and prior < 0.15 else error - 0.015, error + 0.008))
    implied = []
    for k in range(12):
        p = expit(-4.5 + 0.45 * k)
        q = expit(-4.1 + 0.45 * k)
        implied.append(Bin(p, p, 660, 58, p, Value(q, q * 0.8, min(q * 1.2, 1.2))))
    return Shares(0.19, priors, tuple(errors), 0.357, tuple(implied))


def unlabeled():
    facts = Facts(8700, "compound", "positive", 700, 0.19, 0.141, model="screen-rf 3")
    verdict = Verdict(
        "P1",
        "not calibrated",
        "problem",
        "too low",
        "If 19 % of the unlabeled compounds are active, predicted probabilities are too low by 6.0 percentage "
        "points (95 % "
        "interval 4.7 to 6.7).",
        "The size depends on that share, the conclusion does not: the error is smallest at 14 % (3.2 points, 1.3 "
        "to 3.9).",
        "Strong evidence, given the assumed share: p < 0.001.",
        "Labelled positives are assumed to be a random sample of all positives.",
        "Check the share first. Then recalibrate with `PUIsotonic`.",
    )
    numbers = (
        Number("Calibration error at 19 %", Value(0.06, 0.047, 0.067), 0.0, "points", "", "larger error", "PU-ECE."),
        Number(
            "Observed : expected at 19 %",
            Value(1.35, 1.31, 1.38),
            1.0,
            "ratio",
            "too high",
            "too low",
            "Share over mean.",
        ),
        Number("Largest share the data allow", Value(0.357), 0.19, "percent", "", "", "Above it, too many positives."),
    )
    return Contents("unlabeled", facts, verdict, numbers, (shares(),))
