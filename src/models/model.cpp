#include "models/model.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "models/decoder.h"
#include "models/families.h"
#include "models/quantization_config.h"
#include "ops/ops.h"

namespace plimsoll::models {
ir::Shape ParameterView::file_shape() const {
  switch (form) {
    case FileForm::kFilters:
      return {shape.dim(0), shape.dim(3), shape.dim(1), shape.dim(2)};
    case FileForm::kAxisBefore:
      return {1, shape.dim(0), shape.dim(1)};
    case FileForm::kAsStored:
      break;
  }
  return shape;
}

bool Model::is_of_head(std::string_view name) const {
  const std::string_view module = head_module();
  return name.starts_with(module) && name.substr(module.size()).starts_with('.');
}

int64_t Model::num_parameters() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.shape.num_elements();
  return n;
}

int64_t Model::num_trained() const {
  int64_t n = 0;
  for (const Parameter& p : parameters_) n += p.trained ? p.shape.num_elements() : 0;
  return n;
}

int32_t Model::num_blocks() const {
  int32_t count = 0;
  for (const Parameter& p : parameters_) count = std::max(count, p.block + 1);
  return count;
}

void Model::put_in_block(size_t first, int64_t block) {
  for (size_t p = first; p < parameters_.size(); ++p) parameters_[p].block = static_cast<int32_t>(block);
}

void Model::add_batch_norm(BatchNormLayer layer) {
  const auto parameter = [&](const char* suffix, Init init) {
    const std::string name = fmt::format("{}.{}", layer.name, suffix);
    const ir::Shape shape{layer.channels};
    parameters_.push_back({.name = name,
                           .kind = ParameterKind::kVector,
                           .shape = shape,
                           .init = init,
                           .views = {{name, 0, shape}}});
  };
  const auto buffer = [&](const char* suffix, const ir::Shape& shape, float init, bool is_count) {
    const std::string name = fmt::format("{}.{}", layer.name, suffix);
    buffers_.push_back({name, shape, init, name, is_count});
  };
  parameter("weight", Init::kOnes);
  parameter("bias", Init::kZeros);
  buffer(kRunningMean, {layer.channels}, 0, false);
  buffer(kRunningVariance, {layer.channels}, 1, false);
  buffer(kUpdateCount, {2}, 0, true);
  batch_norms_.push_back(std::move(layer));
}

const BatchNormLayer& Model::batch_norm(std::string_view name) const {
  const auto found = std::ranges::find(batch_norms_, name, &BatchNormLayer::name);
  PLIMSOLL_CHECK(found != batch_norms_.end(), std::string(name));
  return *found;
}

void Model::set_norm_statistics(std::optional<NormStatistics> asked, int64_t ranks) {
  std::set<std::string_view> trained;
  for (const Parameter& p : parameters_)
    if (p.trained) trained.insert(p.name);
  for (BatchNormLayer& layer : batch_norms_) {
    layer.ranks = ranks;
    const bool learns = trained.contains(layer.name + ".weight") || trained.contains(layer.name + ".bias");
    layer.statistics = asked.value_or(learns ? NormStatistics::kBatch : NormStatistics::kFrozen);
  }
}

bool Model::couples_micro_batch() const { return scales_by_micro_batch_ || takes_batch_statistics(); }

bool Model::takes_batch_statistics() const {
  return std::ranges::any_of(batch_norms_,
                             [](const BatchNormLayer& l) { return l.statistics == NormStatistics::kBatch; });
}

void Model::keep_in(ir::DType dtype) {
  for (Parameter& p : parameters_) {
    const bool is_saved = adapters_ && !p.views.empty() && adapters_->keys.contains(p.views.front().name);
    p.dtype = is_saved ? ir::DType::kF32 : dtype;
  }
}

void Model::adapt(Adapters adapters, std::vector<Parameter> parameters) {
  PLIMSOLL_CHECK(!adapters_, "adapters upon adapters");
  for (Parameter& p : parameters) parameters_.push_back(std::move(p));
  adapters_ = std::move(adapters);
}

const Adapter* Model::adapter_of(std::string_view weight) const {
  if (!adapters_) return nullptr;
  const auto& all = adapters_->linears;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Adapter& a) { return a.weight == weight; });
  return found == all.end() ? nullptr : &*found;
}

std::string Model::saved_name(std::string_view view) const {
  if (!adapters_) return std::string(view);
  const auto key = adapters_->keys.find(view);
  return key == adapters_->keys.end() ? "" : key->second;
}

namespace {

/// One of the tensors of a storage as a storage of its own.
Parameter part_of(const Parameter& p, const ParameterView& view) {
  Parameter part = p;
  part.name = view.name;
  part.shape = view.shape;
  part.views = {{part.name, 0, part.shape, view.form}};
  part.part_of = p.name;
  return part;
}

/// A single tensor [in, out] as [out, in].
void turn(Parameter& p) {
  PLIMSOLL_CHECK(p.views.size() == 1, p.name);
  p.shape = {p.shape.dim(1), p.shape.dim(0)};
  p.views.front().shape = p.shape;
  p.transposed = false;
}

}  // namespace

int64_t Model::quantize(ir::DType dtype, const std::function<bool(const ParameterView&)>& takes, bool learns,
                        bool stored) {
  PLIMSOLL_CHECK(ir::is_block(dtype), std::string(ir::name(dtype)));
  const auto keep = [&](Parameter& p) {
    p.dtype = dtype;
    p.is_stored = stored;
    if (stored && p.transposed) turn(p);
  };
  std::vector<Parameter> all;
  int64_t count = 0;
  for (Parameter& p : parameters_) {
    const bool may = !(learns && p.trained) && is_linear_map(p);
    const int64_t taken = may ? std::count_if(p.views.begin(), p.views.end(), takes) : 0;
    count += taken;
    if (taken > 0 && p.views.size() > 1) {
      for (const ParameterView& view : p.views) {
        all.push_back(part_of(p, view));
        if (takes(view)) keep(all.back());
      }
      continue;
    }
    if (taken > 0) keep(p);
    all.push_back(std::move(p));
  }
  parameters_ = std::move(all);
  return count;
}

void Model::divide(std::span<const Role> roles) {
  std::vector<Parameter> divided;
  for (Parameter& p : parameters_) {
    PLIMSOLL_CHECK(roles.size() >= p.views.size() && p.part_of.empty(), p.name);
    const auto own = roles.first(p.views.size());
    roles = roles.subspan(own.size());
    const bool is_alike =
        std::all_of(own.begin(), own.end(), [&](const Role& r) { return r == own.front(); });
    if (own.size() == 1 || (is_alike && !own.front().is_apart)) {
      p.trained = own.front().trained;
      p.group = own.front().group;
      divided.push_back(std::move(p));
      continue;
    }
    for (size_t i = 0; i < own.size(); ++i) {
      Parameter part = part_of(p, p.views[i]);
      part.trained = own[i].trained;
      part.group = own[i].group;
      divided.push_back(std::move(part));
    }
  }
  parameters_ = std::move(divided);
}

std::vector<const Parameter*> Model::quantized_parts(std::string_view name) const {
  std::vector<const Parameter*> parts;
  for (const Parameter& p : parameters_)
    if (p.name == name || p.part_of == name) parts.push_back(&p);
  const bool is =
      std::any_of(parts.begin(), parts.end(), [](const Parameter* p) { return ir::is_block(p->dtype); });
  return is ? parts : std::vector<const Parameter*>{};
}

ir::ValueId Model::read_parameter(ir::Builder& b, std::string_view name) const {
  std::vector<ir::ValueId> parts;
  for (const Parameter& p : parameters_) {
    if (p.name != name && p.part_of != name) continue;
    parts.push_back(b.state({p.name, {p.dtype, p.shape}, ir::StateClass::kParameter}));
    if (p.part_of.empty()) return parts.front();
  }
  PLIMSOLL_CHECK(!parts.empty(), std::string(name));
  if (parts.size() == 1) return parts.front();
  // Beside adapters a part that learns is f32, whatever the frozen ones are kept in.
  for (const ir::ValueId& part : parts)
    if (b.type(part).dtype != b.type(parts.front()).dtype) {
      for (ir::ValueId& each : parts) each = ops::cast(b, each, ir::DType::kF32);
      break;
    }
  return ops::concat_rows(b, std::move(parts), std::string(name));
}

ir::ValueId Model::read_constant(ir::Builder& b, std::string_view name) const {
  const auto it =
      std::find_if(constants_.begin(), constants_.end(), [&](const auto& c) { return c.name == name; });
  PLIMSOLL_CHECK(it != constants_.end(), std::string(name));
  return b.state({it->name, {ir::DType::kF32, it->shape}, ir::StateClass::kConstant});
}

Result<std::unique_ptr<Model>> make_model(const io::ConfigJson& config) {
  PLIMSOLL_TRY(
      read_quantization_config(config));  // a method that is not read, before fields that come with it
  PLIMSOLL_ASSIGN(const std::string type, config.string("model_type"));
  if (const Family* family = find_family(type)) {
    if (family->make != nullptr) return family->make(config);
    PLIMSOLL_ASSIGN(DecoderConfig parsed, family->parse(config));
    return std::unique_ptr<Model>(make_decoder(std::move(parsed)));
  }
  return config.error(
      "model_type", "one of " + family_names(),
      fmt::format("the family {} is not supported; docs/models.md lists those that are", type.substr(0, 60)));
}

}  // namespace plimsoll::models
