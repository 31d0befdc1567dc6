"""Numbers of the paper, and of the independent simulation (60 to 1000 repeats) that this package was checked with."""

from __future__ import annotations

SIZES = (200, 400, 800, 1600, 3200, 6400, 12800)

#: Repeats behind the anchors of Figures 4 and 6, by size.
REPEATS = dict(zip(SIZES, (1000, 1000, 600, 400, 200, 120, 60), strict=True))

GROUPS = {"c10": "CIFAR-10", "c100": "CIFAR-100", "imgnet": "ImageNet"}

TRUE_ERROR_L2 = {
    "resnet110_c10": 10.709,
    "resnet110_SD_c10": 9.531,
    "resnet_wide32_c10": 10.126,
    "densenet40_c10": 10.372,
    "resnet110_c100": 20.366,
    "resnet110_SD_c100": 18.519,
    "resnet_wide32_c100": 21.261,
    "densenet40_c100": 23.359,
    "resnet152_imgnet": 8.605,
    "densenet161_imgnet": 5.468,
}
TRUE_ERROR_L1 = (5.837, 4.887, 5.625, 5.902, 15.306, 13.071, 14.753, 16.437, 6.744, 4.929)

FIGURE_1 = {"mean": 6.703, "sd": 1.871, "repeats": 20_000}

#: Bias in percent by size, mean over the networks of a data set.
FIGURE_4 = {
    "c10": {
        "ew_bin": (0.58, -0.42, -1.30, -1.96, -2.39, -2.67, -2.83),
        "em_bin": (0.96, 0.30, -0.12, -0.25, -0.36, -0.45, -0.42),
        "ew_debias": (-4.23, -3.66, -3.27, -3.10, -3.03, -3.01, -3.01),
        "em_debias": (-1.11, -0.71, -0.63, -0.50, -0.48, -0.51, -0.45),
        "ew_sweep": (-3.77, -4.01, -4.21, -4.35, -4.43, -4.48, -4.40),
        "em_sweep": (-0.15, -0.28, -0.43, -0.43, -0.46, -0.52, -0.46),
    },
    "c100": {
        "ew_bin": (-0.32, -1.46, -2.26, -2.74, -2.90, -3.07, -3.14),
        "em_bin": (1.40, 0.66, 0.21, -0.03, -0.08, -0.22, -0.25),
        "ew_debias": (-3.73, -3.29, -3.20, -3.21, -3.13, -3.19, -3.20),
        "em_debias": (-0.62, -0.36, -0.30, -0.28, -0.21, -0.28, -0.28),
        "ew_sweep": (-5.28, -5.46, -5.42, -5.29, -5.04, -4.84, -4.59),
        "em_sweep": (-0.33, -0.32, -0.33, -0.33, -0.22, -0.28, -0.25),
    },
    "imgnet": {
        "ew_bin": (5.97, 3.47, 1.82, 0.81, 0.31, 0.00, -0.12),
        "em_bin": (3.95, 2.19, 1.20, 0.55, 0.25, 0.07, 0.02),
        "ew_debias": (-1.27, -0.86, -0.50, -0.39, -0.30, -0.30, -0.27),
        "em_debias": (-1.17, -0.65, -0.23, -0.19, -0.12, -0.12, -0.07),
        "ew_sweep": (0.56, 0.19, -0.03, -0.21, -0.25, -0.28, -0.26),
        "em_sweep": (0.81, 0.50, 0.30, 0.08, 0.02, -0.05, -0.03),
    },
}
FIGURE_6 = {
    "c10": {
        "ew_bin": (6.92, 5.75, 4.62, 3.53, 2.64, 1.88, 1.33),
        "em_bin": (2.54, 1.84, 1.28, 0.91, 0.66, 0.46, 0.33),
        "ew_debias": (1.94, 1.57, 1.28, 0.97, 0.72, 0.47, 0.32),
        "em_debias": (0.90, 0.62, 0.39, 0.30, 0.22, 0.14, 0.11),
        "ew_sweep": (2.75, 2.27, 1.96, 1.55, 1.20, 0.96, 0.75),
        "em_sweep": (3.63, 2.51, 1.69, 1.19, 0.86, 0.61, 0.44),
    },
    "c100": {
        "ew_bin": (10.14, 7.60, 5.42, 3.86, 2.74, 1.91, 1.40),
        "em_bin": (4.98, 3.58, 2.48, 1.78, 1.25, 0.89, 0.61),
        "ew_debias": (2.78, 2.04, 1.38, 0.96, 0.70, 0.45, 0.36),
        "em_debias": (1.49, 1.10, 0.71, 0.52, 0.35, 0.27, 0.17),
        "ew_sweep": (4.27, 3.39, 2.69, 2.16, 1.73, 1.35, 1.09),
        "em_sweep": (4.24, 3.11, 2.27, 1.64, 1.21, 0.90, 0.62),
    },
    "imgnet": {
        "ew_bin": (10.82, 7.73, 5.46, 3.90, 2.71, 1.93, 1.37),
        "em_bin": (7.27, 5.16, 3.60, 2.58, 1.79, 1.30, 0.90),
        "ew_debias": (2.95, 2.01, 1.39, 1.00, 0.66, 0.46, 0.32),
        "em_debias": (2.02, 1.45, 0.96, 0.72, 0.43, 0.34, 0.23),
        "ew_sweep": (4.95, 3.92, 3.09, 2.52, 1.97, 1.57, 1.20),
        "em_sweep": (4.70, 3.57, 2.64, 2.04, 1.55, 1.20, 0.89),
    },
}

#: Mean absolute bias over ten networks and seven sizes, percent: (paper, independent simulation).
MEAN_ABSOLUTE_BIAS = {
    "ew_bin": (None, 2.011),
    "em_bin": (None, 0.573),
    "ew_debias": (None, 2.755),
    "em_debias": (0.504, 0.457),
    "ew_sweep": (None, 3.881),
    "em_sweep": (0.347, 0.333),
}

#: Figure 2b, Beta(1.1, 0.1) and c^2: bias in percent by number of bins and size (150 repeats).
FIGURE_2_SIZES = (200, 400, 800, 1600, 3200, 6400)
FIGURE_2 = {
    ("ew", 16): (4.33, 2.36, 1.41, 0.56, 0.29, 0.10),
    ("em", 16): (1.45, 0.55, 0.22, 0.00, -0.27, -0.19),
    ("ew", 64): (9.17, 6.80, 4.42, 2.58, 1.50, 0.75),
    ("em", 64): (6.31, 3.41, 1.95, 1.04, 0.41, 0.28),
}

#: Figure 5: miss rates at 5 % false alarms, (n, true error in percent): ew_bin, em_sweep, em_debias; repeats.
FIGURE_5 = {
    (500, 5): (0.725, 0.555, 0.738, 400),
    (500, 10): (0.087, 0.010, 0.085, 400),
    (1000, 5): (0.338, 0.160, 0.330, 400),
    (2000, 2): (0.812, 0.708, 0.785, 400),
    (2000, 5): (0.110, 0.025, 0.080, 400),
    (5000, 2): (0.630, 0.425, 0.615, 200),
    (10000, 2): (0.170, 0.130, 0.160, 200),
}

#: Figure 13: (scores, n, d): mean of ew_bin and of em_sweep, percent. Their repeats are not recorded; those of Figure 2
#: are assumed.
FIGURE_13_REPEATS = 150
FIGURE_13 = {
    ("Uniform", 200, 1.0): (10.79, 6.13),
    ("Uniform", 200, 1.2): (11.62, 7.54),
    ("Uniform", 200, 1.5): (14.77, 11.98),
    ("Beta(1.1, 0.1)", 200, 1.0): (10.33, 4.15),
    ("Beta(1.1, 0.1)", 200, 1.5): (10.92, 6.24),
    ("Beta(1.1, 0.1)", 200, 2.0): (12.43, 9.19),
    ("Uniform", 5000, 1.0): (2.26, 2.03),
    ("Beta(1.1, 0.1)", 5000, 1.0): (2.14, 1.06),
}

#: Figure 14: mean number of bins of the equal-mass sweep: uncalibrated, calibrated.
FIGURE_14 = {200: (7.5, 6.4), 1000: (10.0, 9.8), 5000: (14.1, 15.2)}

#: Table 2 (printed) for the networks whose test scores are at hand.
TABLE_2 = {
    "densenet40_c10": (1.9824, 0.0397),
    "resnet110_c10": (2.7752, 0.0478),
    "resnet110_c100": (1.1823, 0.1081),
    "densenet40_c100": (1.0805, 0.0808),
}

#: Table 3 (printed): the best curve, its AIC, b0 and b1.
TABLE_3 = {
    "densenet40_c10": ("logit_logflip_b1", 2910.62, None, -0.26),
    "resnet110_c10": ("logflip_logflip_b0_b1", 2779.22, -0.24, 0.30),
    "resnet110_c100": ("logflip_logflip_b0_b1", 8181.97, -0.11, 0.28),
    "densenet40_c100": ("logit_logit_b0_b1", 8158.28, -0.97, 0.34),
}

#: Table 3: the four printed AIC of one and the same constant model on densenet40_c10.
CONSTANT_AIC = {
    "log_log_b0": 3531.22,
    "logflip_logflip_b0": 3589.11,
    "logit_logit_b0": 3601.85,
    "logit_logflip_b0": 3679.95,
}

#: Table 4 (printed): ECE_bin of real and of simulated data, percent.
TABLE_4 = {
    "resnet110_c10": (6.67, 8.42),
    "resnet110_SD_c10": (6.54, 8.79),
    "resnet_wide32_c10": (6.09, 8.44),
    "densenet40_c10": (6.70, 8.09),
    "resnet110_c100": (20.26, 18.87),
    "resnet110_SD_c100": (17.44, 15.78),
    "resnet_wide32_c100": (20.40, 17.53),
    "densenet40_c100": (23.12, 19.69),
    "resnet152_imgnet": (6.85, 9.26),
    "densenet161_imgnet": (6.15, 6.87),
}
