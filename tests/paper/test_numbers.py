"""The paper's numbers: each row's checksums were added up from the paper's source by another route than the file."""

from importlib.resources import files

import pytest
import yaml

from phinets.paper.numbers import PaperNumber, paper_numbers

CHECKSUMS: dict[str, dict[str, tuple[int, float, float, float, int]]] = {
    "imagenet-weight-decay": {
        "SimSiam": (6, 268.66, 1134.74, 35.72, 0),
        "PhiNet (MSE)": (6, 342.52, 1278.60, 9.73, 0),
    },
    "cifar5m": {
        "CIFAR-5m": (7, 577.67, 2345.86, 4.42, 1),
    },
    "split-cifar5m": {
        "wd 5e-4 Acc": (7, 636.16, 2551.91, 1.46, 1),
        "wd 5e-4 Fg": (7, 18.21, 74.92, 3.02, 0),
        "wd 2e-5 Acc": (7, 622.22, 2503.04, 1.93, 2),
        "wd 2e-5 Fg": (7, 1.76, 5.56, 2.59, 0),
    },
    "cifar5m-weight-decay": {
        "BYOL": (4, 305.34, 785.25, 1.80, 0),
        "SimSiam": (4, 307.29, 769.18, 11.69, 0),
        "PhiNet (MSE)": (4, 309.38, 775.45, 6.36, 0),
        "RM-SimSiam": (4, 313.23, 793.07, 2.04, 0),
        "X-PhiNet with Aug (MSE)": (4, 320.79, 832.41, 17.18, 0),
        "X-PhiNet with Aug (Cos)": (4, 342.52, 857.39, 1.76, 0),
        "X-PhiNet (MSE)": (4, 325.67, 839.84, 14.92, 1),
        "X-PhiNet (Cos)": (4, 345.58, 862.88, 0.94, 1),
        "X-PhiNet (Cos, g=I)": (4, 341.67, 852.99, 0.87, 0),
    },
    "cifar5m-one-epoch": {
        "BYOL": (4, 239.35, 588.18, 2.17, 0),
        "SimSiam": (4, 277.16, 694.43, 2.51, 0),
        "PhiNet (MSE)": (4, 257.55, 638.53, 6.15, 0),
        "RM-SimSiam": (4, 252.70, 632.05, 5.65, 0),
        "X-PhiNet (MSE)": (4, 290.05, 720.95, 2.78, 0),
        "X-PhiNet (Cos)": (4, 291.68, 724.56, 1.84, 0),
    },
    "split-cifar5m-two-epochs": {
        "2 epochs Acc": (7, 641.83, 2571.27, 1.27, 0),
        "2 epochs Fg": (7, 30.86, 122.96, 2.62, 0),
    },
    "split-cifar5m-mixup": {
        "1 epoch Acc": (7, 640.22, 2569.35, 2.51, 1),
        "1 epoch Fg": (7, -7.08, -29.70, 7.74, 0),
        "2 epochs Acc": (7, 644.35, 2577.92, 3.27, 5),
        "2 epochs Fg": (7, 9.67, 42.90, 3.80, 0),
    },
    "split-cifar10": {
        "FineTune Acc": (6, 544.17, 1906.42, 1.88, 2),
        "FineTune Fg": (6, 24.56, 83.67, 2.81, 0),
        "Mixup Acc": (6, 544.45, 1907.20, 3.07, 1),
        "Mixup Fg": (6, 4.02, 14.85, 2.83, 0),
    },
    "split-cifar100": {
        "FineTune Acc": (6, 467.87, 1635.19, 1.78, 2),
        "FineTune Fg": (6, 31.41, 116.47, 4.11, 0),
        "Mixup Acc": (6, 494.36, 1737.51, 2.08, 1),
        "Mixup Fg": (6, 1.04, 3.13, 4.88, 0),
    },
    "ema-beta": {
        "Acc": (6, 495.90, 1730.13, 2.22, 0),
        "Fg": (6, 4.74, 24.82, 2.14, 0),
    },
    "cifar10-ablation": {
        "SimSiam": (3, 255.49, 527.84, 0.51, 0),
        "SimSiam (Orig-In)": (3, 218.52, 433.25, 12.68, 0),
        "PhiNet MSE, SG-2, g": (3, 259.92, 533.45, 1.54, 0),
        "PhiNet MSE, SG-2, g = I": (3, 260.14, 534.15, 0.30, 0),
        "PhiNet MSE, no SG-2, g": (3, 243.21, 512.63, 1.25, 0),
        "PhiNet MSE, SG-2, h": (3, 257.28, 530.87, 1.04, 0),
        "PhiNet Cos, SG-2, g": (3, 256.06, 520.33, 0.97, 0),
        "PhiNet Cos, SG-2, g = I": (3, 250.62, 513.80, 3.54, 0),
        "PhiNet Cos, no SG-2, g": (3, 47.53, 77.47, 4.41, 0),
        "PhiNet Cos, SG-2, h": (3, 247.00, 503.05, 0.62, 0),
    },
    "imagenet-g": {
        "linear probe": (4, 254.58, 619.52, 0.00, 0),
    },
    "batch-size-knn-0.0001": {
        "SimSiam": (4, 348.70, 871.31, 6.15, 0),
        "PhiNet (MSE)": (4, 355.66, 889.17, 0.73, 4),
        "X-PhiNet (MSE)": (4, 354.49, 885.90, 1.14, 3),
        "X-PhiNet (Cos)": (4, 319.02, 797.40, 36.71, 0),
    },
    "batch-size-knn-0.0005": {
        "SimSiam": (4, 361.79, 905.60, 0.48, 2),
        "PhiNet (MSE)": (4, 362.60, 907.67, 0.69, 4),
        "X-PhiNet (MSE)": (4, 361.27, 904.28, 0.53, 1),
        "X-PhiNet (Cos)": (4, 345.78, 864.93, 1.15, 0),
    },
    "batch-size-knn-0.001": {
        "SimSiam": (4, 350.19, 853.49, 13.01, 1),
        "PhiNet (MSE)": (4, 348.14, 844.49, 7.22, 3),
        "X-PhiNet (MSE)": (4, 363.32, 906.87, 0.77, 1),
        "X-PhiNet (Cos)": (4, 347.13, 869.45, 3.13, 0),
    },
    "batch-size-linear-0.0001": {
        "SimSiam": (4, 355.48, 887.73, 4.37, 0),
        "PhiNet (MSE)": (4, 359.59, 898.10, 0.93, 0),
        "X-PhiNet (MSE)": (4, 354.49, 885.90, 1.14, 0),
        "X-PhiNet (Cos)": (4, 323.02, 801.56, 26.92, 0),
    },
    "batch-size-linear-0.0005": {
        "SimSiam": (4, 363.87, 911.80, 0.30, 0),
        "PhiNet (MSE)": (4, 364.59, 913.47, 0.65, 0),
        "X-PhiNet (MSE)": (4, 361.27, 904.28, 0.53, 0),
        "X-PhiNet (Cos)": (4, 346.44, 866.81, 0.57, 0),
    },
    "batch-size-linear-0.001": {
        "SimSiam": (4, 354.62, 865.03, 13.35, 0),
        "PhiNet (MSE)": (4, 352.43, 855.67, 7.04, 0),
        "X-PhiNet (MSE)": (4, 363.32, 906.87, 0.77, 0),
        "X-PhiNet (Cos)": (4, 349.51, 875.52, 0.81, 0),
    },
    "stl10-0.0001": {
        "SimSiam": (4, 347.93, 871.76, 2.97, 0),
        "PhiNet (MSE)": (4, 345.83, 868.62, 0.97, 0),
    },
    "stl10-0.0005": {
        "SimSiam": (4, 356.08, 889.80, 0.97, 0),
        "PhiNet (MSE)": (4, 356.57, 890.41, 0.78, 0),
    },
    "stl10-0.001": {
        "SimSiam": (3, 268.52, 536.87, 0.19, 0),
        "PhiNet (MSE)": (4, 278.51, 576.78, 0.37, 0),
    },
    "voc-07": {
        "MoCo v2": (3, 170.00, 317.00, 0.00, 1),
        "SimSiam (lr .05, wd 1e-4)": (3, 166.60, 310.90, 0.00, 0),
        "SimSiam (lr .5, wd 1e-5)": (3, 170.00, 316.20, 0.00, 1),
        "PhiNet (lr .05, wd 1e-4)": (3, 169.45, 316.60, 0.00, 1),
        "PhiNet (lr .5, wd 1e-5)": (3, 170.40, 316.20, 0.00, 0),
        "X-PhiNet (lr .05, wd 1e-4)": (3, 169.00, 315.00, 0.00, 0),
        "X-PhiNet (lr .5, wd 1e-5)": (3, 170.90, 317.00, 0.00, 1),
    },
    "voc-07+12": {
        "MoCo v2": (3, 202.60, 386.10, 0.00, 0),
        "SimSiam (lr .05, wd 1e-4)": (3, 196.70, 373.80, 0.00, 0),
        "SimSiam (lr .5, wd 1e-5)": (3, 204.60, 391.10, 0.00, 2),
        "PhiNet (lr .05, wd 1e-4)": (3, 201.51, 383.93, 0.00, 0),
        "PhiNet (lr .5, wd 1e-5)": (3, 201.60, 383.20, 0.00, 0),
        "X-PhiNet (lr .05, wd 1e-4)": (3, 203.10, 387.80, 0.00, 1),
        "X-PhiNet (lr .5, wd 1e-5)": (3, 200.80, 381.30, 0.00, 1),
    },
    "moco-weight-decay": {
        "SimSiam": (8, 577.63, 2850.94, 0.00, 0),
        "MoCo": (8, 681.37, 3017.56, 0.00, 0),
        "PhiNet (MSE)": (8, 610.27, 3001.10, 0.00, 0),
    },
    "augmented-anchor": {
        "SimSiam": (4, 307.29, 769.18, 11.69, 0),
        "X-PhiNet with Aug (MSE)": (4, 320.79, 832.41, 17.18, 1),
        "X-PhiNet with Aug (Cos)": (4, 342.52, 857.39, 1.76, 1),
        "X-PhiNet (MSE)": (4, 325.67, 839.84, 14.92, 2),
        "X-PhiNet (Cos)": (4, 345.58, 862.88, 0.94, 4),
    },
    "memory": {
        "batch 128": (7, 24.54, 97.21, 0.00, 0),
        "batch 1024": (7, 124.97, 494.12, 0.00, 0),
    },
    "time": {
        "batch 128": (6, 57.05, 192.94, 0.00, 0),
        "batch 1024": (6, 40.92, 142.24, 0.00, 0),
    },
}
"""By table and row: cells with a number, Σ mean, Σ position · mean, Σ spread, bold cells."""
SPOTS = [
    ("imagenet-weight-decay", "SimSiam", "5e-05", 44.51, 33.64, False),
    ("cifar5m", "CIFAR-5m", "X-PhiNet (Cos)", 87.46, 0.14, True),
    ("split-cifar5m", "wd 2e-5 Fg", "X-PhiNet (MSE)", -1.03, 0.41, False),
    ("cifar5m-weight-decay", "X-PhiNet (MSE)", "0.0001", 69.02, 14.25, False),
    ("cifar5m-one-epoch", "BYOL", "1e-05", 57.65, 0.38, False),
    ("split-cifar5m-two-epochs", "2 epochs Fg", "RM-SimSiam", 6.12, 0.50, False),
    ("split-cifar5m-mixup", "2 epochs Acc", "Barlow Twins", 92.36, 0.70, True),
    ("split-cifar10", "Mixup Fg", "X-PhiNet (g=I, MSE)", -2.11, 1.61, False),
    ("split-cifar100", "FineTune Acc", "X-PhiNet (g=I, MSE)", 78.31, 0.16, True),
    ("ema-beta", "Acc", "0.99", 83.88, 0.26, False),
    ("cifar10-ablation", "PhiNet Cos, no SG-2, g", "0", 27.57, 4.41, False),
    ("imagenet-g", "linear probe", "PhiNet (g=h)", 55.12, None, False),
    ("batch-size-knn-0.001", "X-PhiNet (MSE)", "1024", 90.08, 0.37, True),
    ("batch-size-linear-0.0001", "X-PhiNet (Cos)", "512", 72.35, 19.84, False),
    ("stl10-0.001", "SimSiam", "1024", None, None, False),
    ("stl10-0.001", "PhiNet (MSE)", "1024", 10.00, 0.01, False),
    ("voc-07", "PhiNet (lr .05, wd 1e-4)", "AP75", 50.4, None, True),
    ("voc-07+12", "SimSiam (lr .5, wd 1e-5)", "AP75", 64.6, None, False),
    ("moco-weight-decay", "PhiNet (MSE)", "0.001", 78.33, None, False),
    ("augmented-anchor", "X-PhiNet with Aug (Cos)", "1e-05", 84.85, 0.99, True),
    ("memory", "batch 1024", "RM-SimSiam", 21.96, None, False),
    ("time", "batch 128", "Barlow Twins", 21.38, None, False),
]


def row_of(table: str, row: str) -> list[PaperNumber]:
    return [cell for (name, _), cell in paper_numbers(table).items() if name == row]


def test_the_file_holds_these_tables_with_these_rows_and_no_others() -> None:
    document = yaml.safe_load(files("phinets.paper").joinpath("numbers.yaml").read_text("utf-8"))
    assert {table: list(of["rows"]) for table, of in document.items()} == {t: list(of) for t, of in CHECKSUMS.items()}
    assert sum(len(paper_numbers(table)) for table in document) == 475


def checksum(cells: list[PaperNumber]) -> tuple[float, ...]:
    means = [(place, cell.mean) for place, cell in enumerate(cells, 1) if cell.mean is not None]
    total, by_place = sum(mean for _, mean in means), sum(place * mean for place, mean in means)
    return len(means), total, by_place, sum(cell.spread or 0.0 for cell in cells), sum(cell.bold for cell in cells)


def test_every_row_adds_up_to_what_the_paper_s_row_adds_up_to() -> None:
    sums = {(table, row): checksum(row_of(table, row)) for table, rows in CHECKSUMS.items() for row in rows}
    wrong = {
        place: found for place, found in sums.items() if found != pytest.approx(CHECKSUMS[place[0]][place[1]], abs=1e-6)
    }
    assert wrong == {}


def test_a_cell_is_found_by_the_names_of_its_row_and_column() -> None:
    wrong = [
        (table, row, column)
        for table, row, column, mean, spread, bold in SPOTS
        if paper_numbers(table)[row, column] != PaperNumber(mean=mean, spread=spread, bold=bold)
    ]
    assert wrong == []


def test_the_spots_touch_every_kind_of_table() -> None:
    kinds = {table.rsplit("-0.", 1)[0] for table in CHECKSUMS}
    assert {table.rsplit("-0.", 1)[0] for table, *_ in SPOTS} == kinds


def test_a_table_that_the_paper_does_not_print_has_no_numbers() -> None:
    assert paper_numbers("cifar10-weight-decay-methods") == {}
