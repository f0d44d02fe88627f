// The forms of gelu: one table, from which attributes, references, the names in a config.json and the CPU's
// choice of a kernel follow. Another form is a row here and its vector function in
// backends/cpu/kernels/elementwise/activation-inl.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ir/attrs.h"

namespace plimsoll::ops {

/// x * Phi(x) and what stands for it. Hendrycks & Gimpel 2016, arXiv:1606.08415.
enum class Gelu : uint8_t {
  kErf,      ///< x * (1 + erf(x / sqrt 2)) / 2
  kTanh,     ///< x * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))) / 2
  kSigmoid,  ///< x * sigmoid(1.702 x)
};

struct GeluForm {
  Gelu form;
  std::string_view approximate;             ///< the attribute of gelu and bias_gelu, as torch names it
  std::span<const std::string_view> names;  ///< of the activation in a config.json, as transformers has them
  double (*value)(double x);                ///< the definition, in double
  double (*slope)(double x);
};

std::span<const GeluForm> gelu_forms();
const GeluForm& gelu_form(Gelu form);
/// The form of that attribute's text, or of that name in a config.json; null where there is none.
const GeluForm* find_gelu(std::string_view approximate);
const GeluForm* find_gelu_by_name(std::string_view name);
/// All names in a config.json, in the table's order.
std::string gelu_names();
/// Of an op with the attribute, which inference has checked.
const GeluForm& gelu_form(const ir::Attrs& attrs);

}  // namespace plimsoll::ops
