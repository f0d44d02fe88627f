#include "model_tools/merge_changes.h"

#include <fmt/format.h>

#include "checkpoints/adapter_files.h"
#include "checkpoints/tensor_files.h"
#include "io/adapter_folder.h"
#include "io/tensor_convert.h"
#include "models/language_model.h"
#include "models/lora.h"
#include "models/quantization_config.h"
#include "models/selection.h"

namespace plimsoll::model_tools {
namespace {

Error refused(std::string what, std::string where, std::string hint) {
  return {ErrorCode::kInvalidArgument, std::move(what), std::move(where), std::move(hint)};
}

constexpr const char* kGoOnBeside =
    "use the adapter with its base model: --adapter of eval, predict and generate";

int64_t num_elements(const io::SafetensorsEntry& entry) {
  int64_t n = 1;
  for (const int64_t extent : entry.shape) n *= extent;
  return n;
}

/// As many as the tensor must have that is changed.
int64_t elements_of(const checkpoints::AdapterChange& c, const io::SafetensorsEntry& base) {
  if (c.whole != nullptr) return c.whole->num_elements();
  if (c.b_bias != nullptr) return c.b_bias->num_elements();
  if (c.rows == nullptr) return c.b->shape[0] * c.a->shape[1];
  const bool fits =
      base.shape.size() == 2 && base.shape[1] == c.rows->shape[1] && c.tokens.back() < base.shape[0];
  return fits ? num_elements(base) : 0;
}

}  // namespace

const io::SafetensorsTensor* MergeChanges::Source::tensor(const std::string& view) const {
  return view.empty() ? nullptr : checkpoints::find_adapter_tensor(file, model.saved_name(view));
}

bool MergeChanges::Source::brings(const std::string& view) const {
  return model.adapters()->brought.contains(view);
}

std::vector<checkpoints::AdapterChange> MergeChanges::of(const io::SafetensorsTensor* tensor) const {
  const auto found = changes_.find(tensor);
  return found == changes_.end() ? std::vector<checkpoints::AdapterChange>{} : found->second;
}

io::SafetensorsEntry MergeChanges::entry_of(const io::WeightRef& ref) const {
  if (const auto grown = resized_.find(ref.tensor); grown != resized_.end())
    return {ref.tensor->name, ref.tensor->dtype, grown->second.tensor->shape};
  return base_.entry_of(ref);
}

Status MergeChanges::add_adapter(const std::string& directory, double weight) {
  PLIMSOLL_ASSIGN(models::LoraSpec spec, models::read_adapter_config(directory));
  spec.lora_dropout = 0;
  io::ConfigJson config(base_.config().fields(), base_.config().source());
  models::fit_vocabulary(spec, config);
  PLIMSOLL_ASSIGN(const auto model, models::make_model(config));
  if (spec.resized && (!is_alone_ || weight != 1))
    return refused("an adapter that brings a vocabulary of its own is merged alone, with the weight 1",
                   directory, "merge it first, and the others onto what comes of it");
  if (const models::LanguageModel* language = models::as_language_model(*model); spec.resized && language)
    vocab_size_ = language->vocab_size();
  PLIMSOLL_ASSIGN(const std::string type, base_.config().model_type());
  if (auto added = models::add_adapters(*model, spec, type, /*strict=*/false); !added)
    return io::of_adapter(std::move(added).error(), directory);
  if (spec.init_lora_weights == models::LoraInit::kLoftq) {
    if (auto fits = find_rounded(spec, type); !fits) return std::move(fits).error().at(directory);
  }
  PLIMSOLL_ASSIGN(io::SafetensorsFile file,
                  io::SafetensorsFile::open(directory + "/" + checkpoints::weights_file(*model)));
  files_.push_back(std::make_unique<io::SafetensorsFile>(std::move(file)));
  PLIMSOLL_TRY(checkpoints::check_adapter(*model, *files_.back()));
  checkpoints::note_unmatched(*model, directory);
  PLIMSOLL_TRY(check_parts(*model));
  return add_changes({*model, *files_.back(), weight});
}

/// The maps that were in few bits when the adapter began by LoftQ, and what they were in; none where the base
/// has the codes itself.
Status MergeChanges::find_rounded(const models::LoraSpec& spec, const std::string& type) {
  rounded_.clear();
  PLIMSOLL_ASSIGN(const auto model, models::make_model(base_.config()));
  PLIMSOLL_TRY(models::add_adapters(*model, spec, type, /*strict=*/false));
  PLIMSOLL_TRY(models::select(*model, {}));
  // Its errors say what does not go together.
  if (base_.stored()) return models::quantize(*model, *base_.stored());
  const ir::DType unsaid = spec.loftq_config.bits == 8 ? ir::DType::kI8Rows : ir::DType::kNf4;
  PLIMSOLL_TRY(models::quantize(*model, {.dtype = spec.loftq_config.dtype.value_or(unsaid),
                                         .skip_modules = spec.loftq_config.skip_modules}));
  for (const models::Parameter& p : model->parameters())
    if (ir::is_block(p.dtype)) rounded_[p.views.front().name] = p.dtype;
  return Ok{};
}

/// What is one tensor in the base and would be two behind it.
Status MergeChanges::check_parts(const models::Model& model) const {
  const auto tied = model.tied_head();
  if (!tied || (model.adapter_of(tied->head) == nullptr && model.adapter_of(tied->embedding) == nullptr))
    return Ok{};
  return refused(
      fmt::format("{} is {}, and the adapter changes only one of the two", tied->head, tied->embedding),
      base_.folder(), kGoOnBeside);
}

Status MergeChanges::add_changes(const Source& source) {
  for (const models::Parameter& p : source.model.parameters()) {
    if (p.is_adapter) continue;
    for (size_t i = 0; i < p.views.size(); ++i) PLIMSOLL_TRY(add_view(source, p, i));
  }
  return Ok{};
}

Status MergeChanges::add_view(const Source& source, const models::Parameter& p, size_t i) {
  const models::Model& model = source.model;
  const std::string& name = p.views[i].name;
  const std::string module = name.substr(0, name.rfind('.'));
  if (const auto tied = model.tied_head(); tied && name == tied->embedding && source.brings(name))
    if (const auto copy = base_.weights().find(tied->head); copy && base_.find(model, name))
      tied_copy_ = copy->tensor;
  const models::Adapter* adapter = model.adapter_of(p.name);
  const io::SafetensorsTensor* whole = source.tensor(model.saved_name(name).empty() ? "" : name);
  if (whole != nullptr && vocab_size_ && source.brings(name))
    return add_resized(source, name, whole, adapter != nullptr);
  if (whole != nullptr)
    PLIMSOLL_TRY(add_change(model, name, {.file = &source.file, .whole = whole, .weight = source.weight}));
  const models::TokenRows& rows = model.adapters()->token_rows;
  if (p.kind == models::ParameterKind::kTable && rows.rows.starts_with(module + ".token"))
    PLIMSOLL_TRY(add_change(model, name,
                            {.file = &source.file,
                             .rows = source.tensor(rows.rows),
                             .tokens = rows.tokens,
                             .weight = source.weight}));
  return adapter == nullptr || adapter->parts[i].rank == 0 ? Status(Ok{}) : add_part(source, p, i);
}

Status MergeChanges::add_part(const Source& source, const models::Parameter& p, size_t i) {
  const models::Model& model = source.model;
  const std::string& name = p.views[i].name;
  const std::string module = name.substr(0, name.rfind('.'));
  const models::Adapter& adapter = *model.adapter_of(p.name);
  const bool is_table = p.kind == models::ParameterKind::kTable;
  const models::Adapter::Part& part = adapter.parts[i];
  checkpoints::AdapterChange change{
      .file = &source.file, .weight = source.weight, .scale = part.scale, .rank = part.rank};
  if (!part.b_bias.empty()) {
    change.b_bias = source.tensor(part.b_bias);
    PLIMSOLL_TRY(add_change(model, module + ".bias", change));
    change.b_bias = nullptr;
  }
  change.a = source.tensor(is_table ? adapter.a : module + ".lora_A.weight");
  change.b = source.tensor(part.b);
  change.magnitude = source.tensor(part.magnitude);
  change.transposed = p.transposed || is_table;
  change.factors = is_table ? models::Factors::kNone : model.adapters()->factors;
  if (change.factors == models::Factors::kLoftq) {
    const auto rounded = rounded_.find(name);
    if (rounded == rounded_.end())
      change.factors = models::Factors::kNone;
    else
      change.loftq_dtype = rounded->second;
    change.loftq_iterations = model.adapters()->loftq.iterations;
  }
  return add_change(model, name, change);
}

/// A table of the adapter's vocabulary in place of the base's.
Status MergeChanges::add_resized(const Source& source, const std::string& view,
                                 const io::SafetensorsTensor* whole, bool is_adapted) {
  if (is_adapted)
    return refused(view +
                       " has a vocabulary of the adapter's own and an adapter, which is not merged in this "
                       "version",
                   base_.folder(), kGoOnBeside);
  const auto base = base_.find(source.model, view);
  if (!base)
    return Error{ErrorCode::kBadData, "the base has no tensor " + view, base_.folder(),
                 "is it the adapter's base?"};
  resized_[base->tensor] = {&source.file, whole};
  return Ok{};
}

/// By the name that the base's files have for it.
Status MergeChanges::add_change(const models::Model& model, const std::string& view,
                                const checkpoints::AdapterChange& change) {
  const auto base = base_.find(model, view);
  if (!base)
    return Error{ErrorCode::kBadData, "the base has no tensor " + view, base_.folder(),
                 "is it the adapter's base, and of the same task?"};
  const io::SafetensorsEntry whole = entry_of(*base);
  if (!io::float_format(whole.dtype) || whole.dtype == "F64")
    return Error{ErrorCode::kBadData,
                 fmt::format("{} is {}, which is not merged into", view, to_string(*base->tensor)),
                 base_.folder(),
                 "the base's weights must be F32, BF16 or F16, or bitsandbytes' with quantization_config"};
  if (elements_of(change, whole) != num_elements(whole))
    return Error{
        ErrorCode::kBadData,
        fmt::format("{} is {}, and the adapter is for another shape", view, to_string(*base->tensor)),
        base_.folder(), "an adapter belongs to the base that it was trained on"};
  changes_[base->tensor].push_back(change);
  return Ok{};
}

}  // namespace plimsoll::model_tools
