"""Layers of images, [batch, channels, height, width], named and initialised as PyTorch's."""
from __future__ import annotations

import math
from typing import Any, Optional, Sequence, Union

from . import functional as f
from ._images import Pair, padding_of, pair, single
from ._module import BatchCount, Buffer, Module, Parameter, _size, uniform_fan_in
from ._values import Value
from .errors import SettingError


class _Conv(Module):
    kernel_size: Any
    stride: Any

    def _declare(self, in_channels: int, out_channels: int, groups: int, kernel: Sequence[int], bias: bool,
                 kind: Optional[str] = None) -> None:
        """Weights and bias, initialised uniformly within ±1/√(inputs of an output)."""
        name = type(self).__name__
        self.in_channels, self.out_channels = _size(name, "in_channels", in_channels), _size(name, "out_channels", out_channels)
        self.groups = _size(name, "groups", groups)
        if self.in_channels % self.groups or self.out_channels % self.groups:
            raise SettingError(f"{name}: groups is {groups}, and there are {in_channels} and {out_channels} channels",
                               "groups divides both")
        shape = (self.out_channels, self.in_channels // self.groups, *kernel)
        fan_in = math.prod(shape[1:])
        self.weight = uniform_fan_in(shape, fan_in, kind)
        self.bias: Optional[Parameter] = uniform_fan_in((self.out_channels,), fan_in) if bias else None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.in_channels}, {self.out_channels}, {self.kernel_size}, stride={self.stride})"


class Conv2d(_Conv):
    """Convolution, as ``torch.nn.Conv2d``.

    Shapes: x [batch, in_channels, height, width] → [batch, out_channels, …, …]; weight [out_channels, in_channels / groups,
    kernel height, kernel width], bias [out_channels]. Both are initialised uniformly within ±1/√(inputs of an output).

    :param padding: zeros around the image: a number, a pair, "valid" (none) or "same" (the image keeps its size).
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Pair, stride: Pair = 1, padding: Union[Pair, str] = 0,
                 dilation: Pair = 1, groups: int = 1, bias: bool = True) -> None:
        self.kernel_size = tuple(_size("Conv2d", "kernel_size", size) for size in pair("Conv2d", "kernel_size", kernel_size))
        self.stride, self.dilation = pair("Conv2d", "stride", stride), pair("Conv2d", "dilation", dilation)
        self.padding = padding_of("Conv2d", padding, self.kernel_size, stride, dilation)
        self._declare(in_channels, out_channels, groups, self.kernel_size, bias, "filters")

    def forward(self, x: Any) -> Value:
        """x [batch, in_channels, height, width] → [batch, out_channels, …, …]."""
        return f.conv2d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class Conv1d(_Conv):
    """Convolution over sequences, as ``torch.nn.Conv1d``.

    Shapes: x [batch, in_channels, length] → [batch, out_channels, …]; weight [out_channels, in_channels / groups, kernel],
    bias [out_channels]. Both are initialised uniformly within ±1/√(inputs of an output).

    :param padding: zeros at both ends: a number, "valid" (none) or "same" (the sequence keeps its length).
    """

    def __init__(self, in_channels: int, out_channels: int, kernel_size: Pair, stride: Pair = 1, padding: Union[Pair, str] = 0,
                 dilation: Pair = 1, groups: int = 1, bias: bool = True) -> None:
        self.kernel_size = _size("Conv1d", "kernel_size", single("Conv1d", "kernel_size", kernel_size))
        self.stride, self.dilation = single("Conv1d", "stride", stride), single("Conv1d", "dilation", dilation)
        self.padding = padding_of("Conv1d", padding if isinstance(padding, str) else (0, single("Conv1d", "padding", padding)),
                                  (1, self.kernel_size), (1, self.stride), (1, self.dilation))[1]
        self._declare(in_channels, out_channels, groups, (self.kernel_size,), bias)

    def forward(self, x: Any) -> Value:
        """x [batch, in_channels, length] → [batch, out_channels, …]."""
        return f.conv1d(x, self.weight, self.bias, self.stride, self.padding, self.dilation, self.groups)


class _BatchNorm(Module):
    axes = (2, 4)  # the numbers of axes that x may have, from and to

    def __init__(self, num_features: int, eps: float = 1e-5, momentum: float = 0.1, affine: bool = True,
                 track_running_stats: bool = True) -> None:
        self.num_features, self.eps = _size(type(self).__name__, "num_features", num_features), float(eps)
        if momentum is None:
            raise SettingError(f"{type(self).__name__}: momentum is None", "running values follow by a number from 0 to 1")
        self.momentum = float(momentum)
        self.weight: Optional[Parameter] = Parameter((self.num_features,), "ones") if affine else None
        self.bias: Optional[Parameter] = Parameter((self.num_features,), "zeros") if affine else None
        self.running_mean: Optional[Buffer] = Buffer((self.num_features,), "zeros") if track_running_stats else None
        self.running_var: Optional[Buffer] = Buffer((self.num_features,), "ones") if track_running_stats else None
        self.num_batches_tracked: Optional[BatchCount] = BatchCount() if track_running_stats else None

    def forward(self, x: Any) -> Value:
        """x [batch, num_features, …] → the same shape."""
        x = f.value(x)
        if not self.axes[0] <= x.ndim <= self.axes[1]:
            raise SettingError(f"{type(self).__name__}: x has the shape {list(x.shape)}",
                               "[batch, channels, height, width]" if self.axes[0] == 4 else "[batch, channels] or [batch, "
                               "channels, length]")
        return f.batch_norm(x, self.running_mean, self.running_var, self.weight, self.bias,
                            self.training or self.running_mean is None, self.momentum, self.eps)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.num_features}, eps={self.eps:g}, momentum={self.momentum:g})"


class BatchNorm1d(_BatchNorm):
    """As ``BatchNorm2d``, of x [batch, num_features] or [batch, num_features, length]."""

    axes = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Each channel with mean 0 and variance 1 over the batch and its pixels, then weight and bias; as ``torch.nn.BatchNorm2d``.

    Shapes: x [batch, num_features, height, width]; weight [num_features] is initialised to ones, bias to zeros. The buffers
    running_mean and running_var follow the statistics of each batch of a step, which num_batches_tracked counts; ``evaluate``
    uses them, and after ``eval()`` steps do. The loss of a step depends on the whole batch, so that ``accumulate`` is not the same as a larger batch.
    """

    axes = (4, 4)


class GroupNorm(Module):
    """Each sample's groups of channels with mean 0 and variance 1, then weight and bias; as ``torch.nn.GroupNorm``.

    Shapes: x [batch, num_channels, …]; weight [num_channels] is initialised to ones, bias to zeros.
    """

    def __init__(self, num_groups: int, num_channels: int, eps: float = 1e-5, affine: bool = True) -> None:
        self.num_groups = _size("GroupNorm", "num_groups", num_groups)
        self.num_channels, self.eps = _size("GroupNorm", "num_channels", num_channels), float(eps)
        if self.num_channels % self.num_groups:
            raise SettingError(f"GroupNorm: {num_channels} channels are not {num_groups} equal groups")
        self.weight: Optional[Parameter] = Parameter((self.num_channels,), "ones") if affine else None
        self.bias: Optional[Parameter] = Parameter((self.num_channels,), "zeros") if affine else None

    def forward(self, x: Any) -> Value:
        """x [batch, num_channels, …] → the same shape."""
        return f.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def __repr__(self) -> str:
        return f"GroupNorm({self.num_groups}, {self.num_channels}, eps={self.eps:g})"


class MaxPool2d(Module):
    """The largest element of each window; see ``max_pool2d``."""

    def __init__(self, kernel_size: Pair, stride: Optional[Pair] = None, padding: Pair = 0) -> None:
        self.kernel_size, self.stride, self.padding = kernel_size, stride, padding

    def forward(self, x: Any) -> Value:
        """x [batch, channels, height, width] → [batch, channels, …, …]."""
        return f.max_pool2d(x, self.kernel_size, self.stride, self.padding)


class AvgPool2d(Module):
    """The mean of each window; see ``avg_pool2d``."""

    def __init__(self, kernel_size: Pair, stride: Optional[Pair] = None, padding: Pair = 0,
                 count_include_pad: bool = True) -> None:
        self.kernel_size, self.stride, self.padding, self.count_include_pad = kernel_size, stride, padding, count_include_pad

    def forward(self, x: Any) -> Value:
        """x [batch, channels, height, width] → [batch, channels, …, …]."""
        return f.avg_pool2d(x, self.kernel_size, self.stride, self.padding, self.count_include_pad)


class AdaptiveAvgPool2d(Module):
    """The image as means of windows; see ``adaptive_avg_pool2d``."""

    def __init__(self, output_size: Any) -> None:
        self.output_size = output_size

    def forward(self, x: Any) -> Value:
        """x [batch, channels, height, width] → [batch, channels, *output_size]."""
        return f.adaptive_avg_pool2d(x, self.output_size)


class Flatten(Module):
    """The axes from ``start_dim`` to ``end_dim`` as one; as ``torch.nn.Flatten``."""

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, x: Any) -> Value:
        """x [batch, …] → [batch, elements]."""
        return f.flatten(x, self.start_dim, self.end_dim)
