#include "checkpoints/adapter_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "base/host.h"
#include "checkpoints/misfits.h"
#include "checkpoints/tensor_files.h"
#include "io/adapter_folder.h"
#include "io/file.h"
#include "io/safetensors_reader.h"
#include "io/tensor_convert.h"
#include "models/image_model.h"
#include "models/language_model.h"
#include "models/lora_config.h"
#include "numerics/convert.h"
#include "ops/elementwise.h"
#include "ops/philox.h"
#include "runtime/session.h"
#include "settings/lora_settings.h"

namespace plimsoll::checkpoints {
namespace {

constexpr int64_t kValuesAtOnce = 4096;  // values at once, a multiple of Philox' four

double drawn(const models::Parameter& p, const ops::PhiloxCounter& words, size_t i) {
  if (p.init == models::Init::kUniform) return p.init_std * (2.0 * ops::uniform(words[i]) - 1.0);
  if (p.init == models::Init::kNormal)
    return p.init_std * ops::normal_pair(words[i / 2 * 2], words[i / 2 * 2 + 1])[i % 2];
  return 0.0;
}

Status draw_view(const models::Parameter& p, const models::ParameterView& view, int64_t first, int64_t seed,
                 runtime::Session& session) {
  const auto bits = static_cast<uint64_t>(seed);
  const ops::RandomStream stream{static_cast<uint32_t>(bits), static_cast<uint32_t>(bits >> 32), 0, 0,
                                 static_cast<uint32_t>(ops::random_key(view.name, "init"))};
  std::array<float, kValuesAtOnce> values;
  const int64_t count = view.shape.num_elements();
  for (int64_t at = 0; at < count; at += kValuesAtOnce) {
    const auto n = static_cast<size_t>(std::min(kValuesAtOnce, count - at));
    for (size_t i = 0; i < n; ++i)
      values[i] = static_cast<float>(
          drawn(p, ops::random_words(stream, static_cast<uint64_t>(at) / 4 + i / 4), i % 4));
    PLIMSOLL_TRY(session.write(p.name, std::as_bytes(std::span(values).first(n)), (first + at) * 4));
  }
  return Ok{};
}

/// What does not fit, counted, the first few by name.
class Misfits {
 public:
  void add(const char* kind, std::string text) { kinds_[kind].push_back(std::move(text)); }
  [[nodiscard]] Status result(const std::string& file) const {
    if (kinds_.empty()) return Ok{};
    std::string text;
    for (const auto& [kind, names] : kinds_)
      add_misfits(text, names, kind, [](const std::string& name) { return name; });
    const std::string base = io::base_named_by(io::folder_of(file));
    return Error{ErrorCode::kBadData, "the adapter does not fit the model: " + text, file,
                 base.empty() ? "an adapter belongs to the base that it was trained on; this one names none"
                              : "this adapter was trained on " + base + ": name that model"};
  }

 private:
  std::map<std::string, std::vector<std::string>> kinds_;
};

/// A convolution that modules_to_save has whole.
Status read_filters(const io::SafetensorsFile& file, const io::SafetensorsTensor& tensor,
                    const StoredTensor& to, runtime::Session& session) {
  const io::FloatFormat format = *io::float_format(tensor.dtype);
  const int64_t stored = io::element_bytes(format);
  std::vector<std::byte> raw(static_cast<size_t>(to.order.filter() * stored));
  return session.write_pieces(
      to.range.state, to.range.offset, to.range.bytes, [&](std::span<std::byte> place, int64_t at) {
        return fill_in_stored_order(
            to.order, 4, at, place, [&](int64_t offset, std::span<std::byte> filed) -> Status {
              PLIMSOLL_TRY(file.read(tensor, offset / 4 * stored, raw));
              io::convert_to_f32(format, raw.data(), reinterpret_cast<float*>(filed.data()),
                                 to.order.filter());
              return Ok{};
            });
      });
}

Status read_tensor(const io::SafetensorsFile& file, const io::SafetensorsTensor& tensor,
                   const StoredTensor& to, runtime::Session& session) {
  if (!to.order.is_stored()) return read_filters(file, tensor, to, session);
  const io::FloatFormat format = *io::float_format(tensor.dtype);
  const int64_t stored = io::element_bytes(format), count = tensor.num_elements();
  std::array<std::byte, static_cast<size_t>(kValuesAtOnce) * 8> raw;
  std::array<float, kValuesAtOnce> values;
  for (int64_t at = 0; at < count; at += kValuesAtOnce) {
    const auto n = static_cast<size_t>(std::min(kValuesAtOnce, count - at));
    const auto bytes = std::span(raw).first(n * static_cast<size_t>(stored));
    PLIMSOLL_TRY(file.read(tensor, at * stored, bytes));
    io::convert_to_f32(format, bytes.data(), values.data(), static_cast<int64_t>(n));
    PLIMSOLL_TRY(
        session.write(to.range.state, std::as_bytes(std::span(values).first(n)), to.range.offset + at * 4));
  }
  return Ok{};
}

/// PEFT saves an adapted embedding's or head's own weight beside the adapter; it does not learn.
bool is_copy_of_base(const models::Model& model, const io::SafetensorsTensor& tensor) {
  constexpr std::string_view kRoot = "base_model.model.", kCopy = ".base_layer.weight";
  if (!tensor.name.starts_with(kRoot) || !tensor.name.ends_with(kCopy)) return false;
  const std::string module =
      tensor.name.substr(kRoot.size(), tensor.name.size() - kRoot.size() - kCopy.size());
  return model.adapters()->keys.contains(module + ".lora_A.weight") ||
         model.adapters()->keys.contains(module + ".lora_embedding_A");
}

/// What a tensor that the adapter's settings do not ask for is: an embedding that is the head as well has one
/// value under both names.
enum class Unasked : uint8_t { kUnknown, kOfBase, kTiedHead };
Unasked unasked(const models::Model& model, const io::SafetensorsTensor& tensor) {
  constexpr std::string_view kRoot = "base_model.model.", kBase = ".base_layer.";
  if (!tensor.name.starts_with(kRoot)) return Unasked::kUnknown;
  std::string name = tensor.name.substr(kRoot.size());
  if (const size_t base = name.find(kBase); base != std::string::npos) name.erase(base, kBase.size() - 1);
  const auto tied = model.tied_head();
  if (tied && name == tied->head)
    return model.adapters()->brought.contains(tied->embedding) ? Unasked::kTiedHead : Unasked::kOfBase;
  for (const models::Parameter& p : model.parameters())
    for (const models::ParameterView& view : p.views)
      if (view.name == name) return Unasked::kOfBase;
  return Unasked::kUnknown;
}

/// What the base is quantised to, for who makes the same codes again.
void describe_rounding(const models::Model& model, const std::vector<std::string>& skipped,
                       models::Loftq& loftq) {
  for (const models::Parameter& p : model.parameters())
    if (ir::is_block(p.dtype)) loftq.dtype = p.dtype;
  loftq.bits = loftq.dtype == ir::DType::kI8Rows ? 8 : 4;
  if (!skipped.empty()) loftq.skip_modules = skipped;
}

}  // namespace

const io::SafetensorsTensor* find_adapter_tensor(const io::SafetensorsFile& file, const std::string& name) {
  if (const auto* tensor = file.find(name)) return tensor;
  constexpr std::string_view kBase = ".base_layer.bias";
  if (name.ends_with(kBase)) return file.find(name.substr(0, name.size() - kBase.size()) + ".bias");
  return nullptr;
}

Status draw_adapters(const models::Model& model, int64_t seed, runtime::Session& session) {
  return for_each_view(model, [&](size_t p, const models::ParameterView& view, int64_t first) -> Status {
    const models::Parameter& parameter = model.parameters()[p];
    return parameter.is_adapter ? draw_view(parameter, view, first, seed, session) : Status(Ok{});
  });
}

namespace {

/// An adapter that was written when modules_to_save went by whole parts of names: those modules are the
/// base's.
bool lacks_all_by_ending(const models::Model& model, const io::SafetensorsFile& file) {
  return std::ranges::none_of(model.adapters()->by_ending, [&](const std::string& view) {
    return find_adapter_tensor(file, model.saved_name(view)) != nullptr;
  });
}

/// PEFT's word for what such a model is trained for; empty: there is none.
std::string peft_task(const models::Model& model) {
  const models::LanguageModel* language = models::as_language_model(model);
  if (language == nullptr || language->has_masked_head()) return {};
  if (language->has_span_head()) return "QUESTION_ANS";
  return model.num_labels() > 0 ? "SEQ_CLS" : "CAUSAL_LM";
}

}  // namespace

Status check_adapter(const models::Model& model, const io::SafetensorsFile& file) {
  std::set<const io::SafetensorsTensor*> used;
  Misfits misfits;
  const bool lacks = lacks_all_by_ending(model, file);
  PLIMSOLL_TRY(for_each_view(model, [&](size_t, const models::ParameterView& view, int64_t) -> Status {
    const std::string name = model.saved_name(view.name);
    if (name.empty()) return Ok{};
    const std::vector<int64_t> shape = extents_of(view.shape);
    const io::SafetensorsTensor* tensor = find_adapter_tensor(file, name);
    used.insert(tensor);
    if (tensor == nullptr && lacks && model.adapters()->by_ending.contains(view.name)) return Ok{};
    if (tensor == nullptr)
      misfits.add("missing", fmt::format("{} {}", name, extents_text(shape)));
    else if (tensor->shape != shape)
      misfits.add("of another shape", fmt::format("{} {}, expected {}", io::shown_name(tensor->name),
                                                  to_string(*tensor), extents_text(shape)));
    else if (!io::float_format(tensor->dtype))
      misfits.add("of a type that is not read",
                  fmt::format("{} {}", io::shown_name(tensor->name), to_string(*tensor)));
    return Ok{};
  }));
  for (const io::SafetensorsTensor& tensor : file.tensors())
    if (!used.contains(&tensor) && !is_copy_of_base(model, tensor)) {
      const Unasked what = unasked(model, tensor);
      if (what == Unasked::kTiedHead) continue;
      misfits.add(what == Unasked::kOfBase
                      ? "of the base model that adapter_config.json does not list as saved"
                      : "that the model does not have",
                  io::shown_name(tensor.name));
    }
  return misfits.result(file.path());
}

void note_unmatched(const models::Model& model, const std::string& directory) {
  for (const std::string& what : model.adapters()->unmatched)
    note(fmt::format("{}/adapter_config.json: {}: it has no effect, as in PEFT", directory, what));
}

Status load_adapter(const models::Model& model, const std::string& directory, runtime::Session& session) {
  PLIMSOLL_ASSIGN(const io::SafetensorsFile file,
                  io::SafetensorsFile::open(directory + "/" + weights_file(model)));
  PLIMSOLL_TRY(check_adapter(model, file));
  note_unmatched(model, directory);
  for (const StoredTensor& to : parameter_tensors(model, session.plan()))
    if (const io::SafetensorsTensor* tensor = find_adapter_tensor(file, to.entry.name))
      PLIMSOLL_TRY(read_tensor(file, *tensor, to, session));
  return Ok{};
}

Result<std::string> adapter_config_of(const settings::RunConfig& config, const models::Model& model) {
  models::LoraSpec base;
  if (!config.lora.adapter.empty()) {
    PLIMSOLL_ASSIGN(base, models::read_adapter_config(config.lora.adapter));
  }
  PLIMSOLL_ASSIGN(models::LoraSpec spec, settings::lora_spec(config.lora, base));
  if (spec.init_lora_weights == models::LoraInit::kLoftq)
    describe_rounding(model, config.quantization.llm_int8_skip_modules, spec.loftq_config);
  models::AdapterOf of{.base = config.model.path, .task = peft_task(model)};
  if (model.num_labels() > 0) of.head = model.head_module();
  PLIMSOLL_ASSIGN(const io::ConfigJson model_config, settings::load_model_config(config.model));
  PLIMSOLL_ASSIGN(of.model_type, model_config.model_type());
  for (const models::Parameter& p : model.parameters()) of.transposed = of.transposed || p.transposed;
  return models::adapter_config_text(spec, of);
}

}  // namespace plimsoll::checkpoints
