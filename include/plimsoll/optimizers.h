// Optimizers with torch's names, meanings and defaults. An optimizer is a description: the plan makes its
// update a part of the step.
//
//   AdamW{.lr = 3e-4, .weight_decay = 0.1}.group("norm|bias", {.weight_decay = 0})
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/json.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

using Betas = std::pair<double, double>;

/// What a group of parameters has otherwise than the rest.
struct GroupOptions {
  std::optional<double> lr = {};
  std::optional<double> weight_decay = {};
  std::optional<Betas> betas = {};
};

/// Any of the optimizers below, with its groups.
class Optimizer {
 public:
  struct Group {
    std::string pattern;
    GroupOptions options;
  };

  /// AdamW with its defaults.
  Optimizer();
  /// `settings`: of a run file's section `training`.
  explicit Optimizer(detail::Json settings) : settings_(std::move(settings)) {}
  template <class Kind>
  requires requires(const Kind& kind) { kind.settings(); }
  Optimizer(const Kind& kind) : settings_(kind.settings()) {}  // implicit by design

  /// The parameters in whose name the POSIX extended regular expression is found form a group; of several the
  /// first counts.
  [[nodiscard]] Optimizer group(std::string_view pattern, const GroupOptions& options) const {
    Optimizer with = *this;
    with.groups_.push_back({std::string(pattern), options});
    return with;
  }
  [[nodiscard]] const detail::Json& own_settings() const { return settings_; }
  [[nodiscard]] const std::vector<Group>& groups() const { return groups_; }

 private:
  detail::Json settings_;
  std::vector<Group> groups_;
};

namespace detail {
inline Json optimizer_settings(const char* name, double lr, double weight_decay) {
  Json settings;
  settings.set("optimizer", name).set("learning_rate", lr).set("weight_decay", weight_decay);
  settings.set("weight_decay_scope", "all");
  return settings;
}
inline Json adam_settings(const char* name, double lr, const Betas& betas, double eps, double weight_decay) {
  Json settings = optimizer_settings(name, lr, weight_decay);
  settings.set("adam_beta1", betas.first).set("adam_beta2", betas.second).set("adam_epsilon", eps);
  return settings;
}
}  // namespace detail

/// Weight decay is added to the gradient.
struct SGD {
  double lr = 1e-3;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;
  [[nodiscard]] detail::Json settings() const {
    return detail::optimizer_settings("sgd", lr, weight_decay)
        .set("momentum", momentum)
        .set("nesterov", nesterov);
  }
  [[nodiscard]] Optimizer group(std::string_view pattern, const GroupOptions& options) const {
    return Optimizer(*this).group(pattern, options);
  }
};

/// Weight decay is added to the gradient.
struct Adam {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0;
  [[nodiscard]] detail::Json settings() const {
    return detail::adam_settings("adam", lr, betas, eps, weight_decay);
  }
  [[nodiscard]] Optimizer group(std::string_view pattern, const GroupOptions& options) const {
    return Optimizer(*this).group(pattern, options);
  }
};

/// Weight decay shrinks the parameter and stays out of the gradient.
struct AdamW {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
  [[nodiscard]] detail::Json settings() const {
    return detail::adam_settings("adamw", lr, betas, eps, weight_decay);
  }
  [[nodiscard]] Optimizer group(std::string_view pattern, const GroupOptions& options) const {
    return Optimizer(*this).group(pattern, options);
  }
};

/// AdamW whose moments take 8 bits an element.
struct AdamW8bit {
  double lr = 1e-3;
  Betas betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.01;
  [[nodiscard]] detail::Json settings() const {
    return detail::adam_settings("adamw_8bit", lr, betas, eps, weight_decay);
  }
  [[nodiscard]] Optimizer group(std::string_view pattern, const GroupOptions& options) const {
    return Optimizer(*this).group(pattern, options);
  }
};

/// One moment; the update is a sign. Chen et al. 2023, arXiv:2302.06675.
struct Lion {
  double lr = 1e-4;
  Betas betas = {0.9, 0.99};
  double weight_decay = 0;
  [[nodiscard]] detail::Json settings() const {
    return detail::optimizer_settings("lion", lr, weight_decay)
        .set("adam_beta1", betas.first)
        .set("adam_beta2", betas.second);
  }
  [[nodiscard]] Optimizer group(std::string_view pattern, const GroupOptions& options) const {
    return Optimizer(*this).group(pattern, options);
  }
};

/// With a given rate: no relative step, no scaling by the parameter. Shazeer and Stern 2018.
struct Adafactor {
  double lr = 1e-3;
  double weight_decay = 0;
  [[nodiscard]] detail::Json settings() const {
    return detail::optimizer_settings("adafactor", lr, weight_decay);
  }
  [[nodiscard]] Optimizer group(std::string_view pattern, const GroupOptions& options) const {
    return Optimizer(*this).group(pattern, options);
  }
};

/// For the matrices of hidden layers; AdamW updates the other parameters.
struct Muon {
  double lr = 1e-3;
  double momentum = 0.95;
  bool nesterov = true;
  double weight_decay = 0.1;
  [[nodiscard]] detail::Json settings() const {
    detail::Json muon;
    muon.set("momentum", momentum).set("nesterov", nesterov);
    return detail::optimizer_settings("muon", lr, weight_decay).raw("muon", muon.text());
  }
  [[nodiscard]] Optimizer group(std::string_view pattern, const GroupOptions& options) const {
    return Optimizer(*this).group(pattern, options);
  }
};

inline Optimizer::Optimizer() : settings_(AdamW{}.settings()) {}

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
