// Arguments of activation.cu.
#pragma once

#include "backends/cuda/device/types.cuh"

namespace plimsoll::cuda {

/// Behind ops::gelu_form's forms.
constexpr int kSilu = 3;

/// value(x + bias), where `bias` is given; with dy: dy * slope(x + bias).
struct Activate {
  Operand dy, x, bias, out;
  i64 n = 0, cols = 0;
  int form = kSilu;
};
/// x: rows of 2 * cols, gate then up. n elements of results of width cols. With dy, which is of that width,
/// out is as x, and may lie where x does.
struct Swiglu {
  Operand dy, x, out;
  i64 n = 0, cols = 0;
};

inline constexpr DeviceKernel<Activate> kActivate{"elementwise/activation", "activate"};
inline constexpr DeviceKernel<Swiglu> kSwiglu{"elementwise/activation", "swiglu"};
inline constexpr DeviceKernel<Swiglu> kSwigluGrad{"elementwise/activation", "swiglu_grad"};

}  // namespace plimsoll::cuda
