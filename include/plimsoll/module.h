// Modules: trees of named parameters. A module names its parent and itself when it is made, as a member of
// the parent:
//
//   struct Mlp : Module {
//     using Module::Module;
//     Linear up{*this, "up", 64, 256}, down{*this, "down", 256, 64};
//     Value forward(Value x) { return x + down(gelu(up(x))); }
//   };
//
// Parameters are named by their path below the outermost module, `layers.0.up.weight`, as in torch. A module
// holds descriptions and no numbers: those are a session's.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plimsoll/value.h"

namespace plimsoll {
inline namespace PLIMSOLL_INLINE_NAMESPACE {

/// How a parameter begins. A draw depends on the session's seed, the parameter's name and the element alone.
struct Init {
  const char* kind = "zeros";
  const char* key = nullptr;
  double scale = 0;

  static Init zeros() { return {}; }
  static Init ones() { return {"ones", nullptr, 0}; }
  static Init constant(double value) { return {"constant", "value", value}; }
  /// In [-bound, bound).
  static Init uniform(double bound) { return {"uniform", "bound", bound}; }
  static Init normal(double standard_deviation = 1) { return {"normal", "std", standard_deviation}; }
};

class Module {
 public:
  Module() = default;
  Module(Module& parent, std::string_view name) { parent.adopt(name, *this); }
  Module(const Module&) = delete;  // its parent and its parameters refer to it
  Module& operator=(const Module&) = delete;

  /// The name below the outermost module, which has none.
  [[nodiscard]] std::string path() const {
    if (parent_ == nullptr) return {};
    const std::string above = parent_->path();
    return above.empty() ? name_ : above + '.' + name_;
  }
  /// Parameters of this module and of those below it, in the order in which they were made.
  [[nodiscard]] std::vector<Parameter*> parameters() const {
    std::vector<Parameter*> all;
    collect(all);
    return all;
  }
  /// False: plans that are made from now on do not train the parameters below.
  void requires_grad(bool is_trained);
  /// False: in plans that are made from now on BatchNorm below uses its running values in steps too, and
  /// nothing is dropped.
  void train(bool is_training = true) {
    is_training_ = is_training;
    for (const Member& member : members_)
      if (member.module != nullptr) member.module->train(is_training);
  }
  void eval() { train(false); }
  [[nodiscard]] bool training() const { return is_training_; }

 protected:
  /// `module` becomes a part of this one.
  void adopt(std::string_view name, Module& module) {
    module.parent_ = this;
    module.name_ = name;
    members_.push_back({&module, nullptr});
  }

 private:
  friend class Parameter;
  struct Member {
    Module* module;
    Parameter* parameter;
  };
  void collect(std::vector<Parameter*>& all) const {
    for (const Member& member : members_) {
      if (member.parameter != nullptr) all.push_back(member.parameter);
      if (member.module != nullptr) member.module->collect(all);
    }
  }
  [[nodiscard]] const Module& outermost() const { return parent_ == nullptr ? *this : parent_->outermost(); }

  Module* parent_ = nullptr;
  std::string name_;
  std::vector<Member> members_;
  bool is_training_ = true;
};

/// A tensor of a module. In a loss function it is a value: `x * scale`.
class Parameter {
 public:
  /// `kind`: "embedding" for a table of rows, which Muon leaves to AdamW; "filters" for a convolution's [out,
  /// in / groups, height, width]; "buffer" and "count": see Buffer and BatchCount; none: by its axes.
  Parameter(Module& module, std::string_view name, Shape shape, const Init& init = {},
            const char* kind = nullptr)
      : module_(&module), name_(name), shape_(std::move(shape)), init_(init), kind_(kind) {
    module.members_.push_back({nullptr, this});
  }
  Parameter(const Parameter&) = delete;
  Parameter& operator=(const Parameter&) = delete;

  [[nodiscard]] std::string path() const {
    const std::string above = module_->path();
    return above.empty() ? name_ : above + '.' + name_;
  }
  [[nodiscard]] const Shape& shape() const { return shape_; }
  void requires_grad(bool is_trained) { is_trained_ = is_trained; }

  operator Value() const {  // implicit by design
    detail::Trace* trace = detail::needed_trace(name_.c_str());
    if (trace == nullptr) return {};
    // The first use declares the whole model, so that a plan knows of parameters that nothing uses.
    if (!trace->parameters.contains(this))
      for (const Parameter* parameter : module_->outermost().parameters()) parameter->declare(*trace);
    return Value(trace, trace->parameters[this]);
  }

 private:
  void declare(detail::Trace& trace) const {
    const std::string path = this->path();
    pls_value value = PLS_NONE;
    if (!trace.by_name.emplace(path, this).second) {
      detail::fail(
          &trace,
          Error(ErrorKind::invalid_argument, "two parameters are named " + path,
                "members of a module have names of their own; several models of one plan are members "
                "of one module; a weight that is used twice is one parameter: linear(x, tokens.weight)"));
    } else {
      detail::Json options;
      options.set("init", init_.kind).set("trained", is_trained_);
      if (init_.key != nullptr) options.set(init_.key, init_.scale);
      if (kind_ != nullptr) options.set("kind", kind_);
      detail::check(&trace, detail::call([&](pls_error** error) {
        return pls_parameter(trace.builder.get(), path.c_str(), shape_.data(),
                             static_cast<int>(shape_.size()), options.text().c_str(), &value, error);
      }));
      const bool is_buffer =
          kind_ != nullptr && (std::string_view(kind_) == "buffer" || std::string_view(kind_) == "count");
      trace.declared.push_back({path, shape_, is_trained_ && !is_buffer, is_buffer});
    }
    trace.parameters[this] = value;
  }

  Module* module_;
  std::string name_;
  Shape shape_;
  Init init_;
  const char* kind_;
  bool is_trained_ = true;
};

/// A tensor that no optimizer changes: a running value of BatchNorm. It is read, written, saved and loaded as
/// parameters are.
class Buffer : public Parameter {
 public:
  Buffer(Module& module, std::string_view name, Shape shape, const Init& init = {})
      : Parameter(module, name, std::move(shape), init, "buffer") {}
};

/// The number of batches that the running values of its module have followed, "num_batches_tracked" of
/// PyTorch: one number, which no function reads.
class BatchCount : public Parameter {
 public:
  explicit BatchCount(Module& module) : Parameter(module, "num_batches_tracked", {}, {}, "count") {}
};

inline void Module::requires_grad(bool is_trained) {
  for (Parameter* parameter : parameters()) parameter->requires_grad(is_trained);
}

}  // namespace PLIMSOLL_INLINE_NAMESPACE
}  // namespace plimsoll
