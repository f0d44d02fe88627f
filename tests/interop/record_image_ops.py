"""Writes tests/ops/image_ops_torch.h: what PyTorch gives, in float64, for normalisations over channels, pooling and soft targets,
with the gradients of a weighted sum. Operands are made by a rule that the tests know (recorded_operand): whole eighths, many of them equal.

    .venv-bench/bin/python tests/interop/record_image_ops.py
"""
import pathlib

import torch
import torch.nn.functional as F


def operand(*shape, salt=0):
    count = torch.tensor(shape).prod().item()
    values = [((i * 37 + salt * 11) % 23 - 11) / 8 for i in range(count)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape).requires_grad_()


def channels_first(x):
    return x.permute(0, 3, 1, 2)


def channels_last(x):
    return x.permute(0, 2, 3, 1)


def batch_norm(relu, adds):
    def run(x, weight, bias, *residual):
        y = channels_last(F.batch_norm(channels_first(x), None, None, weight, bias, training=True, eps=1e-3))
        y = y + residual[0] if adds else y
        return F.relu(y) if relu else y

    images = (2, 3, 3, 2)
    operands = [operand(*images, salt=1), operand(2, salt=2), operand(2, salt=3)]
    return run, operands + ([operand(*images, salt=4)] if adds else [])


def group_norm(x, weight, bias):
    return channels_last(F.group_norm(channels_first(x), 2, weight, bias, eps=1e-3))


def max_pool(x):
    return channels_last(F.max_pool2d(channels_first(x), 3, 2, 1))


def avg_pool(counts):
    return lambda x: channels_last(F.avg_pool2d(channels_first(x), 3, 2, 1, count_include_pad=counts))


def smoothed(x):
    return F.cross_entropy(x, torch.tensor([1, -100, 4]), label_smoothing=0.1, reduction="sum")


def mixed(x):
    first, second = F.one_hot(torch.tensor([1, 0, 4]), 5), F.one_hot(torch.tensor([2, 0, 3]), 5)
    share = torch.tensor([[0.25], [0.5], [1.0]], dtype=torch.float64)
    return F.cross_entropy(x, share * first + (1 - share) * second, label_smoothing=0.1, reduction="sum")


CASES = {
    "BatchNorm": batch_norm(False, False),
    "BatchNormRelu": batch_norm(True, False),
    "BatchNormAddRelu": batch_norm(True, True),
    "GroupNorm": (group_norm, [operand(2, 2, 2, 4, salt=1), operand(4, salt=2), operand(4, salt=3)]),
    "MaxPool": (max_pool, [operand(1, 5, 6, 1, salt=1)]),
    "AvgPool": (avg_pool(True), [operand(1, 5, 6, 1, salt=1)]),
    "AvgPoolSkips": (avg_pool(False), [operand(1, 5, 6, 1, salt=1)]),
    "Smoothed": (smoothed, [operand(3, 5, salt=1)]),
    "Mixed": (mixed, [operand(3, 5, salt=1)]),
}


def numbers(tensor):
    return "{" + ", ".join(repr(float(v)) for v in tensor.detach().flatten()) + "}"


def main():
    lines = []
    for name, (function, operands) in CASES.items():
        result = function(*operands)
        weights = torch.arange(1, result.numel() + 1, dtype=torch.float64).reshape(result.shape) / 8
        grads = torch.autograd.grad((result * weights).sum(), operands)
        lines.append(f"inline const TorchResult kTorch{name} = {{{numbers(result)}, "
                     f"{{{', '.join(numbers(g) for g in grads)}}}}};")
    header = pathlib.Path(__file__).resolve().parent.parent / "ops" / "image_ops_torch.h"
    header.write_text(f"""// Made by tests/interop/record_image_ops.py with PyTorch {torch.__version__.split("+")[0]}.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "ops/op_testing.h"

namespace plimsoll::ops_testing {{

/// Element i of an operand is ((37 i + 11 salt) mod 23 - 11) / 8.
inline RefTensor recorded_operand(Shape shape, int64_t salt) {{
  RefTensor t = reference::constant({{DType::kF32, shape}}, 0);
  for (size_t i = 0; i < t.data.size(); ++i)
    t.data[i] = static_cast<double>((static_cast<int64_t>(i) * 37 + salt * 11) % 23 - 11) / 8;
  return t;
}}
/// What the results are summed up with: 1/8, 2/8, ...
inline RefTensor recorded_weights(Shape shape) {{
  RefTensor t = reference::constant({{DType::kF32, shape}}, 0);
  for (size_t i = 0; i < t.data.size(); ++i) t.data[i] = static_cast<double>(i + 1) / 8;
  return t;
}}
struct TorchResult {{
  std::vector<double> result;
  std::vector<std::vector<double>> gradients;
}};
/// The largest difference of two lists of numbers, relative to the largest magnitude.
inline double distance_to_torch(const RefTensor& got, const std::vector<double>& expected) {{
  return distance(got, RefTensor{{got.type, expected}});
}}

/// The op's result and gradients are torch's, of the sum of its results times 1/8, 2/8, ...
inline void expect_torch(const DerivativeCase& c, const TorchResult& torch) {{
  const Tensors outputs = evaluate(c.op, c.inputs, c.attrs);
  EXPECT_LT(distance_to_torch(outputs[0], torch.result), 1e-12) << c.name;
  Tensors weights(outputs.size());
  weights[0] = recorded_weights(outputs[0].type.shape);
  std::vector<bool> wanted(torch.gradients.size(), true);
  const Tensors found = gradients(c, weights, wanted);
  for (size_t i = 0; i < torch.gradients.size(); ++i)
    EXPECT_LT(distance_to_torch(found[i], torch.gradients[i]), 1e-12) << c.name << ", operand " << i;
}}

{chr(10).join(lines)}

}}  // namespace plimsoll::ops_testing
""")


if __name__ == "__main__":
    main()
