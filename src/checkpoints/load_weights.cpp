// Matching is by name and shape, before anything is read. Reading is in pieces that threads claim in the
// files' order; 16-bit types are read into the upper half of their place and spread out from there while they
// are in the cache (io/tensor_convert.h).
#include "checkpoints/load_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <map>
#include <set>

#include "base/check.h"
#include "checkpoints/fp16_range.h"
#include "checkpoints/load_quantized.h"
#include "checkpoints/master_weights.h"
#include "checkpoints/misfits.h"
#include "checkpoints/quantize_weights.h"
#include "checkpoints/quantized_start.h"
#include "checkpoints/tensor_files.h"
#include "checkpoints/weight_names.h"
#include "io/parallel.h"
#include "io/tensor_convert.h"
#include "models/image_model.h"
#include "models/quantization_config.h"
#include "numerics/convert.h"
#include "optimizers/optimizer.h"
#include "runtime/session.h"
#include "settings/state_formats.h"

namespace plimsoll::checkpoints {
namespace {

/// What a thread claims at once, in bytes of f32: small enough to balance, large enough for long reads.
constexpr int64_t kLoadBytes = int64_t{8} << 20;
/// What is read and converted at once, in elements: 256 KiB of f32 stay in a core's second-level cache.
constexpr int64_t kBlockElements = int64_t{64} << 10;
constexpr int64_t kRowBytes = int64_t{64} << 10;

/// Elements [first, first + count) of a source.
struct LoadPiece {
  const WeightSource* source;
  std::string state;
  int64_t to;  ///< the byte of the state where the first of them goes
  ir::DType dtype;
  int64_t first, count;
};

bool is_of_bitsandbytes(const io::WeightRef& ref) {
  const std::string& name = ref.tensor->name;
  return name.ends_with(".SCB") || name.find(".quant_state.bitsandbytes__") != std::string::npos;
}

std::string hint_for(const WeightMatch& match) {
  if (!match.otherwise.empty())
    return "quantization_config in config.json must be that of these weights: take both from the same place";
  if (std::ranges::any_of(match.extra, is_of_bitsandbytes))
    return "bitsandbytes quantized these weights, and config.json has no quantization_config: take both from "
           "the same place";
  if (!match.unreadable.empty())
    return "weights are read from F32, F16, BF16 and F64: save the model in one of these";
  if (match.missing.empty() && match.misshaped.empty() && match.buffers.fits())
    return "is config.json that of these weights? A tensor that no part of the model uses must not be there";
  return "config.json and the weights must be of one model: take both from the same place, or set "
         "model.init=random";
}

/// A tensor that is read as it is: of the state's own dtype.
bool is_same(io::FloatFormat format, ir::DType dtype) {
  return format == io::float_format(safetensors_name(dtype));
}

/// Reads elements of a piece from `first` on into 16 bits, by way of f32.
Status read_rounded(const LoadPiece& piece, io::FloatFormat format, int64_t first,
                    std::span<std::byte> place) {
  const int64_t stored = io::element_bytes(format);
  alignas(64) std::array<std::byte, kRowBytes> buffer;
  alignas(64) std::array<float, kRowBytes / 8> values;
  const auto block = static_cast<int64_t>(values.size());
  const numerics::Format to = settings::state_format(piece.dtype).encoding;
  const auto elements = static_cast<int64_t>(place.size()) / 2;
  for (int64_t i = 0; i < elements; i += block) {
    const auto count = static_cast<size_t>(std::min(block, elements - i));
    const std::span<std::byte> from(buffer.data(), count * static_cast<size_t>(stored));
    PLIMSOLL_TRY(piece.source->weight.file->read(*piece.source->weight.tensor, (first + i) * stored, from));
    if (format == io::FloatFormat::kF32)
      std::memcpy(values.data(), from.data(), from.size());
    else
      io::convert_to_f32(format, from.data(), values.data(), static_cast<int64_t>(count));
    const std::span<const float> exact(values.data(), count);
    if (const auto at = to == numerics::Format::kFp16 ? first_beyond_fp16(exact) : std::nullopt)
      return beyond_fp16(piece.source->view->name, exact[*at], Fp16Use::kWeight);
    numerics::encode(to, exact, place.subspan(static_cast<size_t>(2 * i), 2 * count));
  }
  return Ok{};
}

/// Reads elements of a piece from `first` on and converts them into their place.
Status read_into(const LoadPiece& piece, io::FloatFormat format, int64_t first, std::span<std::byte> place) {
  const io::SafetensorsFile& file = *piece.source->weight.file;
  const io::SafetensorsTensor& tensor = *piece.source->weight.tensor;
  const int64_t stored = io::element_bytes(format);
  if (is_same(format, piece.dtype)) return file.read(tensor, first * stored, place);
  if (piece.dtype != ir::DType::kF32) return read_rounded(piece, format, first, place);
  alignas(64) std::array<std::byte, kRowBytes> buffer;  // F64 alone, which is wider than its place
  const bool wider = stored > 4;
  const int64_t block = wider ? kRowBytes / stored : kBlockElements;
  const auto elements = static_cast<int64_t>(place.size()) / 4;
  for (int64_t i = 0; i < elements; i += block) {
    const int64_t count = std::min(block, elements - i);
    float* const to = reinterpret_cast<float*>(place.data()) + i;
    std::byte* const from = wider ? buffer.data() : reinterpret_cast<std::byte*>(to) + count * (4 - stored);
    PLIMSOLL_TRY(file.read(tensor, (first + i) * stored, {from, static_cast<size_t>(count * stored)}));
    io::convert_to_f32(format, from, to, count);
  }
  return Ok{};
}

/// Reads elements of a piece of filters, from `first` on, whose order in the file is another.
Status read_filters(const LoadPiece& piece, io::FloatFormat format, int64_t first,
                    std::span<std::byte> place) {
  const int64_t width = ir::bits(piece.dtype) / 8;
  return fill_in_stored_order(file_order(*piece.source->view), width, first * width, place,
                              [&](int64_t offset, std::span<std::byte> filed) {
                                return read_into(piece, format, offset / width, filed);
                              });
}

Status read_piece(const LoadPiece& piece, runtime::Session& session) {
  if (piece.source->quantized) return load_quantized(*piece.source, session);
  if (ir::is_block(piece.dtype)) return read_quantized(*piece.source, session);
  const io::FloatFormat format = *io::float_format(piece.source->weight.tensor->dtype);
  const int64_t width = ir::bits(piece.dtype) / 8;
  return session.write_pieces(
      piece.state, piece.to, piece.count * width, [&](std::span<std::byte> place, int64_t at) {
        const int64_t first = piece.first + at / width;
        return file_order(*piece.source->view).is_stored() ? read_into(piece, format, first, place)
                                                           : read_filters(piece, format, first, place);
      });
}

void add_pieces(const WeightSource& source, const std::string& state, const runtime::Session& session,
                std::vector<LoadPiece>& pieces) {
  const ir::DType dtype = session.type(state).dtype;
  const ir::Shape& shape = source.parameter->shape;
  if (ir::is_block(dtype)) {  // whole: its scales are scaled together
    pieces.push_back({&source, state, 0, dtype, 0, shape.num_elements()});
    return;
  }
  const int64_t bytes = ir::bits(dtype) / 8, row = shape.num_elements() / shape.dim(0);
  const int64_t view = source.view->row * row * bytes;
  const int64_t elements = source.view->shape.num_elements();
  for (int64_t first = 0; first < elements; first += kLoadBytes / 4)
    pieces.push_back(
        {&source, state, view + first * bytes, dtype, first, std::min(kLoadBytes / 4, elements - first)});
}

std::vector<LoadPiece> cut_into_pieces(const models::Model& model, const WeightMatch& match,
                                       const runtime::Session& session) {
  std::vector<LoadPiece> pieces;
  for (const WeightSource& source : match.sources) {
    if (starts_quantized(model, source)) continue;
    const std::string& name = source.parameter->name;
    const bool is_mastered = has_master(*source.parameter, session);
    add_pieces(source, is_mastered ? optimizers::master_name(name) : name, session, pieces);
    // No rank has all of a master that ranks share: the weights follow from the file as well.
    if (shares_master(*source.parameter, session)) add_pieces(source, name, session, pieces);
  }
  // In the files' order, so that a cold disk reads ahead.
  std::stable_sort(pieces.begin(), pieces.end(), [](const LoadPiece& a, const LoadPiece& b) {
    const io::WeightRef &x = a.source->weight, &y = b.source->weight;
    return x.file != y.file ? x.file < y.file : x.tensor->offset < y.tensor->offset;
  });
  return pieces;
}

bool has_shape(const models::ParameterView& view, const std::vector<int64_t>& shape) {
  return extents_of(view.file_shape()) == shape;
}

/// Under what is right or wrong with it.
void add_source(WeightSource source, WeightMatch& match) {
  const models::Parameter& parameter = *source.parameter;
  const auto& quantized = source.quantized;
  const std::vector<int64_t>& shape = quantized ? quantized->shape : source.weight.tensor->shape;
  const bool is_alike =
      parameter.is_stored ? quantized && block_type(*quantized) == parameter.dtype : !quantized.has_value();
  auto& list = !is_alike                                                      ? match.otherwise
               : !has_shape(*source.view, shape)                              ? match.misshaped
               : !quantized && !io::float_format(source.weight.tensor->dtype) ? match.unreadable
                                                                              : match.sources;
  list.push_back(std::move(source));
}

/// Two tensors of the same type, shape and bytes.
Result<bool> equal_tensors(const io::WeightRef& a, const io::WeightRef& b) {
  if (a.tensor->dtype != b.tensor->dtype || a.tensor->shape != b.tensor->shape) return false;
  std::array<std::byte, kRowBytes / 2> x, y;
  for (int64_t at = 0; at < a.tensor->bytes; at += static_cast<int64_t>(x.size())) {
    const auto count = static_cast<size_t>(std::min<int64_t>(x.size(), a.tensor->bytes - at));
    PLIMSOLL_TRY(a.file->read(*a.tensor, at, std::span(x).first(count)));
    PLIMSOLL_TRY(b.file->read(*b.tensor, at, std::span(y).first(count)));
    if (std::memcmp(x.data(), y.data(), count) != 0) return false;
  }
  return true;
}

/// A head of its own beside a config that ties it: neither may be passed over.
Status check_tied_head(const WeightMatch& match, const io::ModelWeights& weights) {
  if (!match.tied_head) return Ok{};
  for (const WeightSource& source : match.sources) {
    if (source.view != match.tied_head->view) continue;
    PLIMSOLL_ASSIGN(const bool equal, equal_tensors(source.weight, match.tied_head->weight));
    if (equal) return Ok{};
  }
  return Error{
      ErrorCode::kBadData,
      fmt::format("the config ties the head to the embedding (tie_word_embeddings), and {} differs "
                  "from it",
                  io::shown_name(match.tied_head->weight.tensor->name)),
      weights.directory(),
      "set tie_word_embeddings to false: in config.json, or model.overrides.tie_word_embeddings=false"};
}

/// Where another library's tensor holds several of the model's: the view's rows of it.
io::WeightRef part_for(const models::ParameterView& view, const models::Model& model,
                       const io::WeightRef& whole, WeightMatch& match) {
  const models::ImageModel* image = models::as_image_model(model);
  const models::RowPart part = image == nullptr ? models::RowPart() : image->other_part(view.name);
  const io::SafetensorsTensor& tensor = *whole.tensor;
  const std::string other = model.other_name(view.name);
  if (part.count == 1 || other.empty() || !tensor.name.ends_with(other)) return whole;
  if (tensor.shape.empty() || tensor.shape.front() % part.count != 0) return whole;
  auto rows = std::make_shared<io::SafetensorsTensor>(tensor);
  rows->shape.front() /= part.count;
  rows->bytes /= part.count;
  rows->offset += part.index * rows->bytes;
  match.parts.push_back(rows);
  return {whole.file, match.parts.back().get()};
}

}  // namespace

Result<WeightMatch> match_weights(const models::Model& model, const io::ModelWeights& weights,
                                  bool draws_head) {
  WeightMatch match;
  const std::string prefix(model.base_prefix());
  const std::optional<models::TiedHead> tied = model.tied_head();
  std::map<std::string, QuantizedTensor> quantized;
  if (std::ranges::any_of(model.parameters(), &models::Parameter::is_stored)) {
    PLIMSOLL_ASSIGN(quantized, find_quantized(weights));
  }
  std::set<const io::SafetensorsTensor*> used;
  for (const models::Parameter& parameter : model.parameters())
    for (const models::ParameterView& view : parameter.views) {
      if (parameter.is_adapter) continue;
      auto weight = find_weight(weights, view.name, model);
      // A file may hold what is tied under the head's name alone.
      if (!weight && tied && view.name == tied->embedding) weight = weights.find(tied->head);
      if (weight) used.insert(weight->tensor);
      if (weight) weight = part_for(view, model, *weight, match);
      if (draws_head && model.is_of_head(view.name)) {
        if (weight) match.ignored.push_back(*weight);
        match.drawn.push_back(&view);
        continue;
      }
      const bool comes_with_adapter = model.adapters() && model.adapters()->brought.contains(view.name);
      if (comes_with_adapter) continue;
      if (!weight) {
        // Without labels nothing reads it.
        const bool may_lack = draws_head || model.num_labels() == 0;
        const bool is_drawn = may_lack && model.is_drawn_where_missing(view.name);
        (is_drawn ? match.drawn : match.missing).push_back(&view);
        continue;
      }
      WeightSource source{&parameter, &view, *weight};
      if (const auto found = quantized.find(weight->tensor->name); found != quantized.end()) {
        used.insert(found->second.parts.begin(), found->second.parts.end());
        source.quantized = std::move(found->second);
      }
      add_source(std::move(source), match);
    }
  match.buffers = match_buffers(model, weights);
  for (const auto* sources : {&match.buffers.sources, &match.buffers.misfit})
    for (const BufferSource& source : *sources) used.insert(source.weight.tensor);
  for (const std::string_view name : weights.names()) {
    const io::WeightRef weight = *weights.find(name);
    if (used.contains(weight.tensor)) continue;
    if (tied && name == tied->head) {
      for (const WeightSource& source : match.sources)
        if (source.view->name == tied->embedding)
          match.tied_head = WeightSource{source.parameter, source.view, weight};
      match.ignored.push_back(weight);
      continue;
    }
    const bool ignored = model.ignores_tensor(name) || model.ignores_tensor(prefix + std::string(name));
    (ignored ? match.ignored : match.extra).push_back(weight);
  }
  return match;
}

Error weights_do_not_fit(const WeightMatch& match, const io::ModelWeights& weights) {
  std::string text;
  add_misfits(text, match.missing, "missing", [](const models::ParameterView* view) {
    return fmt::format("{} {}", view->name, extents_text(extents_of(view->file_shape())));
  });
  add_misfits(text, match.buffers.missing, "missing", [](const models::Buffer* buffer) {
    return fmt::format("{} {}", buffer->view, extents_text(extents_of(buffer->shape)));
  });
  add_misfits(text, match.buffers.misfit, "of another type or shape", [](const BufferSource& s) {
    return fmt::format("{} {}, expected {}", io::shown_name(s.weight.tensor->name),
                       to_string(*s.weight.tensor),
                       s.buffer->is_count ? "I64 []" : extents_text(extents_of(s.buffer->shape)));
  });
  add_misfits(text, match.misshaped, "of another shape", [](const WeightSource& s) {
    return fmt::format("{} {}, expected {}", io::shown_name(s.weight.tensor->name),
                       s.quantized ? extents_text(s.quantized->shape) : to_string(*s.weight.tensor),
                       extents_text(extents_of(s.view->file_shape())));
  });
  add_misfits(text, match.unreadable, "of a type that is not read", [](const WeightSource& s) {
    return fmt::format("{} {}", io::shown_name(s.weight.tensor->name), to_string(*s.weight.tensor));
  });
  add_misfits(text, match.otherwise, "not in the bits that config.json says", [](const WeightSource& s) {
    return fmt::format(
        "{} {}, expected {}", io::shown_name(s.weight.tensor->name),
        s.quantized ? std::string(models::quantized_name(block_type(*s.quantized)))
                    : to_string(*s.weight.tensor),
        s.parameter->is_stored ? std::string(models::quantized_name(s.parameter->dtype)) : "plain numbers");
  });
  add_misfits(text, match.extra, "that the model does not have", [](const io::WeightRef& w) {
    return fmt::format("{} {}", io::shown_name(w.tensor->name), to_string(*w.tensor));
  });
  return {ErrorCode::kBadData, "the tensors are not those of the model: " + text, weights.directory(),
          hint_for(match)};
}

Status check_match(const WeightMatch& match, const io::ModelWeights& weights) {
  return match.fits() ? check_tied_head(match, weights) : weights_do_not_fit(match, weights);
}

namespace {

/// What is drawn and does not learn would be saved nowhere: an adapter's files hold what learns alone.
Status check_drawn(const models::Model& model, const WeightMatch& match, const io::ModelWeights& weights) {
  if (!model.adapters()) return Ok{};
  for (const models::ParameterView* view : match.drawn)
    if (!model.adapters()->keys.contains(view->name))
      return Error{ErrorCode::kBadData,
                   fmt::format("{} is missing and would be drawn, and the adapter's files would not have it",
                               view->name),
                   weights.directory(),
                   fmt::format("let it learn and be saved: lora.modules_to_save=[{}]",
                               view->name.substr(0, view->name.rfind('.')))};
  return Ok{};
}

}  // namespace

Status check_weights(const models::Model& model, const io::ModelWeights& weights, bool draws_head) {
  PLIMSOLL_ASSIGN(const WeightMatch match, match_weights(model, weights, draws_head));
  PLIMSOLL_TRY(check_drawn(model, match, weights));
  return check_match(match, weights);
}

Result<LoadReport> load_weights(const models::Model& model, const io::ModelWeights& weights,
                                runtime::Session& session, int num_threads, bool draws_head) {
  const auto start = std::chrono::steady_clock::now();
  PLIMSOLL_ASSIGN(const WeightMatch match, match_weights(model, weights, draws_head));
  PLIMSOLL_TRY(check_drawn(model, match, weights));
  PLIMSOLL_TRY(check_match(match, weights));
  const std::vector<LoadPiece> pieces = cut_into_pieces(model, match, session);
  PLIMSOLL_TRY(io::in_parallel(pieces.size(), num_threads,
                               [&](size_t i, size_t) { return read_piece(pieces[i], session); }));
  // One after the other: each takes the memory of a matrix and of what it is decomposed through.
  for (const WeightSource& source : match.sources)
    if (starts_quantized(model, source)) PLIMSOLL_TRY(load_quantized_start(model, source, session));
  PLIMSOLL_TRY(round_masters(model, session, num_threads));
  PLIMSOLL_TRY(load_buffers(match.buffers, session));
  LoadReport report;
  report.path = weights.directory();
  report.num_tensors = std::ssize(match.sources) + std::ssize(match.buffers.sources);
  for (const WeightSource& source : match.sources) {
    report.file_bytes += source.weight.tensor->bytes;
    if (source.quantized) report.file_bytes += source.quantized->absmax.tensor->bytes;
    report.memory_bytes += ir::TensorType{source.parameter->dtype, source.view->shape}.bytes().count;
    if (has_master(*source.parameter, session)) report.memory_bytes += 4 * source.view->shape.num_elements();
  }
  for (const BufferSource& source : match.buffers.sources) {
    report.file_bytes += source.weight.tensor->bytes;
    report.memory_bytes += models::state_of(*source.buffer).type.bytes().count;
  }
  for (const models::ParameterView* view : match.drawn) report.drawn.push_back(view->name);
  for (const io::WeightRef& weight : match.ignored) report.ignored.push_back(weight.tensor->name);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace plimsoll::checkpoints
