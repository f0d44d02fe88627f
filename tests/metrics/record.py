"""Prints the rows of tests/metrics/metrics_test.cpp: what scikit-learn and scipy say of the same examples.

Needs scikit-learn and scipy (bench/requirements.txt). The examples come from a generator of 32 bits that the test has
too: outputs are multiples of a quarter, so that there are ties, in ranks and for the largest.
"""
import warnings

import numpy
import scipy.stats
import sklearn.metrics

warnings.simplefilter("ignore")  # what is not defined is a value too


class Generator:
    def __init__(self, seed):
        self.x = seed

    def draw(self, count, steps):
        """`count` integers of [0, steps)."""
        values = []
        for _ in range(count):
            self.x = (self.x * 1664525 + 1013904223) % 2 ** 32
            values.append((self.x >> 8) * steps >> 24)
        return numpy.array(values)


def outputs(generator, examples, labels):
    return (generator.draw(examples * labels, 17) / 4 - 2).astype(numpy.float32).reshape(examples, labels)


def row(kind, examples, labels, classes, seed, values):
    texts = ["NAN" if numpy.isnan(v) else f"{float(v):.17g}" for v in values]
    print(f"    {{{kind}, {examples}, {labels}, {classes}, {seed}, {{{', '.join(texts)}}}}},")


def single(examples, labels, classes, seed):
    generator = Generator(seed)
    predicted = outputs(generator, examples, labels).argmax(axis=1)
    truth = generator.draw(examples, classes)
    f1 = [sklearn.metrics.f1_score(truth, predicted)] if labels == 2 else []
    row("kSingle", examples, labels, classes, seed, [
        sklearn.metrics.accuracy_score(truth, predicted), *f1,
        sklearn.metrics.f1_score(truth, predicted, average="macro"), sklearn.metrics.matthews_corrcoef(truth, predicted)])


def multi(examples, labels, classes, seed):
    """The last labels - classes labels never occur in truth, the first is never predicted."""
    generator = Generator(seed)
    values = outputs(generator, examples, labels)
    values[:, 0] = -abs(values[:, 0])
    predicted = (1 / (1 + numpy.exp(-values.astype(numpy.float64))) > 0.5).astype(int)
    truth = generator.draw(examples * labels, 2).reshape(examples, labels)
    truth[:, classes:] = 0
    row("kMulti", examples, labels, classes, seed, [
        sklearn.metrics.accuracy_score(truth, predicted), sklearn.metrics.f1_score(truth, predicted, average="macro")])


def numbers(examples, labels, classes, seed):
    """`classes` distinct labels; 1 is a constant."""
    generator = Generator(seed)
    predicted = outputs(generator, examples, labels)
    truth = (generator.draw(examples * labels, classes) / 8).astype(numpy.float32).reshape(examples, labels)
    mse = sklearn.metrics.mean_squared_error(truth.astype(numpy.float64), predicted.astype(numpy.float64))
    if labels > 1:
        return row("kRegression", examples, labels, classes, seed, [mse])
    both = truth[:, 0].astype(numpy.float64), predicted[:, 0].astype(numpy.float64)
    row("kRegression", examples, labels, classes, seed, [
        scipy.stats.pearsonr(*both).statistic, scipy.stats.spearmanr(*both).statistic, mse])


for arguments in ((1, 2, 2, 1), (2, 2, 2, 5), (7, 3, 3, 2), (40, 5, 3, 3), (40, 3, 1, 4), (1000, 20, 20, 6), (30, 1, 1, 7),
                  (200, 2, 2, 8), (50, 2, 1, 9)):
    single(*arguments)
for arguments in ((1, 3, 3, 1), (50, 2, 2, 2), (200, 4, 2, 3)):
    multi(*arguments)
for arguments in ((2, 1, 9, 1), (60, 1, 5, 2), (60, 1, 1, 3), (500, 1, 1000, 4), (20, 3, 8, 5)):
    numbers(*arguments)
