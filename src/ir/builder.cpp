#include "ir/builder.h"

#include <fmt/format.h>

#include "base/check.h"

namespace plimsoll::ir {

Builder::Scope::Scope(Builder& b, std::string_view name, int32_t block)
    : builder_(b), length_(b.layer_.size()), block_(b.block_) {
  b.block_ = block;
  if (!b.layer_.empty()) b.layer_ += '.';
  b.layer_ += name;
}

Builder::Scope::~Scope() {
  builder_.layer_.resize(length_);
  builder_.block_ = block_;
}

std::vector<ValueId> Builder::ops(std::string_view name, std::vector<ValueId> inputs, Attrs attrs) {
  static constexpr size_t kMaxResults = 8;
  if (error_) return std::vector<ValueId>(kMaxResults);
  const OpDef* def = lookup_(name);
  PLIMSOLL_CHECK(def != nullptr, std::string(name));
  Op op{.def = def, .inputs = std::move(inputs), .attrs = std::move(attrs), .layer = layer_, .block = block_};
  const OpTypes types = op_types(graph_, op);
  auto results = def->infer(types);
  if (!results) {
    error_ = std::make_unique<Error>(std::move(results).error());
    if (error_->where.empty()) error_->where = layer_;
    return std::vector<ValueId>(kMaxResults);
  }
  return graph_.op(graph_.append(std::move(op), *results)).outputs;
}

ValueId Builder::op(std::string_view name, std::vector<ValueId> inputs, Attrs attrs) {
  return ops(name, std::move(inputs), std::move(attrs)).front();
}

ValueId Builder::state(const StateDecl& decl) {
  graph_.declare_state(decl);
  return read(decl.name);
}

ValueId Builder::read(std::string_view name) {
  if (error_) return {};
  const StateDecl* decl = graph_.find_state(name);
  PLIMSOLL_CHECK(decl != nullptr, std::string(name));
  const OpDef* def = lookup_("state");
  PLIMSOLL_CHECK(def != nullptr);
  Op op{.def = def, .attrs = Attrs{{"name", std::string(name)}}, .layer = layer_, .block = block_};
  return graph_.op(graph_.append(std::move(op), {decl->type})).outputs[0];
}

void Builder::assign(std::string_view name, ValueId value) {
  ops("state_assign", {value}, {{"name", std::string(name)}});
}

const TensorType& Builder::type(ValueId v) const {
  static const TensorType kNone{DType::kF32, Shape{1}};
  return v.valid() ? graph_.type(v) : kNone;
}

Status Builder::status() const {
  if (error_) return Error(*error_);
  return Ok{};
}

}  // namespace plimsoll::ir
