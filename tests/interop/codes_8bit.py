"""Optimizer states in eight bits: the published map, and blocks of codes that are the nearest of it."""
import numpy
import torch


def dynamic_map(signed):
    """Dettmers et al. 2022, arXiv:2110.02861: decade i of seven holds 2^i values a sign (2^(i+1) unsigned), the centres of equal
    pieces of its upper nine tenths; beside them 0 and 1."""
    values = [0.0, 1.0]
    for decade in range(7):
        edges = torch.linspace(0.1, 1, (2 ** decade if signed else 2 ** (decade + 1)) + 1)
        centres = ((edges[:-1] + edges[1:]) / 2.0 * 10 ** (decade - 6)).tolist()
        values += centres + ([-v for v in centres] if signed else [])
    assert len(values) == 256
    return numpy.sort(numpy.array(values, numpy.float32))


class Codes:
    """Blocks of 256 values as codes of the map and a scale."""

    def __init__(self, count, table):
        self.table, self.count = table, count
        self.codes, self.absmax = numpy.zeros(count, numpy.uint8), numpy.zeros(-(-count // 256), numpy.float32)

    def values(self):
        return self.table[self.codes] * numpy.repeat(self.absmax, 256)[:self.count]

    def put(self, values):
        blocks = numpy.zeros(len(self.absmax) * 256, numpy.float32)
        blocks[:self.count] = values
        blocks = blocks.reshape(-1, 256)
        self.absmax = numpy.abs(blocks).max(1)
        scale = numpy.divide(numpy.float32(1), self.absmax, out=numpy.zeros_like(self.absmax), where=self.absmax > 0)
        scaled = (blocks * scale[:, None]).ravel()[:self.count]
        # The halfway points are fp32's, as in bitsandbytes; at one the smaller magnitude wins.
        magnitudes = self.table[self.table >= 0]
        nearest = numpy.searchsorted((magnitudes[:-1] + magnitudes[1:]) / numpy.float32(2), numpy.abs(scaled), side="left")
        zero = 256 - len(magnitudes)
        self.codes = numpy.where(scaled < 0, zero - numpy.minimum(nearest, zero), zero + nearest).astype(numpy.uint8)
