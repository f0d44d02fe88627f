#include "ops/gelu.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

#include "base/check.h"
#include "ops/activation_math.h"

namespace plimsoll::ops {
namespace {

const double kRoot = std::sqrt(2.0 / std::numbers::pi);
constexpr double kCubic = 0.044715, kSigmoidScale = 1.702;

double erf_value(double x) { return 0.5 * x * (1.0 + std::erf(x / std::numbers::sqrt2)); }
double erf_slope(double x) {
  const double density = std::exp(-0.5 * x * x) / std::sqrt(2.0 * std::numbers::pi);
  return 0.5 * (1.0 + std::erf(x / std::numbers::sqrt2)) + x * density;
}

double tanh_part(double x) { return std::tanh(kRoot * (x + kCubic * x * x * x)); }
double tanh_value(double x) { return 0.5 * x * (1.0 + tanh_part(x)); }
double tanh_slope(double x) {
  const double t = tanh_part(x);
  return 0.5 * (1.0 + t) + 0.5 * x * (1.0 - t * t) * kRoot * (1.0 + 3.0 * kCubic * x * x);
}

double sigmoid_value(double x) { return x * sigmoid(kSigmoidScale * x); }
double sigmoid_slope(double x) {
  const double s = sigmoid(kSigmoidScale * x);
  return s + x * kSigmoidScale * s * (1.0 - s);
}

constexpr std::array<std::string_view, 2> kErfNames = {"gelu", "gelu_python"};
constexpr std::array<std::string_view, 4> kTanhNames = {"gelu_new", "gelu_pytorch_tanh", "gelu_fast",
                                                        "gelu_accurate"};
constexpr std::array<std::string_view, 1> kSigmoidNames = {"quick_gelu"};

constexpr std::array<GeluForm, 3> kForms = {
    {{Gelu::kErf, "none", kErfNames, erf_value, erf_slope},
     {Gelu::kTanh, "tanh", kTanhNames, tanh_value, tanh_slope},
     {Gelu::kSigmoid, "sigmoid", kSigmoidNames, sigmoid_value, sigmoid_slope}}};

}  // namespace

std::span<const GeluForm> gelu_forms() { return kForms; }

const GeluForm& gelu_form(Gelu form) {
  const GeluForm& row = kForms[static_cast<size_t>(form)];
  PLIMSOLL_CHECK(row.form == form, "the forms of gelu are out of order");
  return row;
}

const GeluForm* find_gelu(std::string_view approximate) {
  const auto row = std::ranges::find(kForms, approximate, &GeluForm::approximate);
  return row == kForms.end() ? nullptr : row;
}

const GeluForm* find_gelu_by_name(std::string_view name) {
  const auto row = std::ranges::find_if(
      kForms, [&](const GeluForm& f) { return std::ranges::find(f.names, name) != f.names.end(); });
  return row == kForms.end() ? nullptr : row;
}

std::string gelu_names() {
  std::string all;
  for (const GeluForm& form : kForms)
    for (const std::string_view name : form.names) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

const GeluForm& gelu_form(const ir::Attrs& attrs) {
  const GeluForm* form = find_gelu(attrs.str("approximate"));
  PLIMSOLL_CHECK(form != nullptr, attrs.str("approximate"));
  return *form;
}

}  // namespace plimsoll::ops
