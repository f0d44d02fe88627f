"""The layers under PyTorch's name for them: ``from plimsoll import nn``, then ``nn.Conv2d``. Each is also ``plimsoll.Conv2d``."""
from ._module import Buffer, Module, ModuleList, Parameter, Sequential
from .image_layers import AdaptiveAvgPool2d, AvgPool2d, BatchNorm1d, BatchNorm2d, Conv1d, Conv2d, Flatten, GroupNorm, MaxPool2d
from .layers import Dropout, Embedding, LayerNorm, Linear, RMSNorm

__all__ = ["AdaptiveAvgPool2d", "AvgPool2d", "BatchNorm1d", "BatchNorm2d", "Buffer", "Conv1d", "Conv2d", "Dropout", "Embedding", "Flatten",
           "GroupNorm", "LayerNorm", "Linear", "MaxPool2d", "Module", "ModuleList", "Parameter", "RMSNorm", "Sequential"]
