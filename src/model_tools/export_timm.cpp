#include "model_tools/export_timm.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "checkpoints/load_weights.h"
#include "images/processor.h"
#include "io/adapter_folder.h"
#include "io/file.h"
#include "io/label_fields.h"
#include "model_tools/rewrite_model.h"
#include "models/image_model.h"
#include "models/timm.h"

namespace plimsoll::model_tools {
namespace {

using images::Processor;

constexpr const char* kProcessorFile = "preprocessor_config.json";
constexpr double kTimmEps = 1e-6;

template <typename Numbers>
io::Tree list_of(const Numbers& numbers) {
  io::Tree list = io::Tree::list();
  for (const auto number : numbers) list.items.push_back(io::Tree::of(number));
  return list;
}

/// The share of the resized image that timm crops, such that floor(size / share) is what it is resized to.
double crop_share(int64_t size, int64_t resized) {
  const double share = static_cast<double>(size) / static_cast<double>(resized);
  const bool is_exact = static_cast<int64_t>(std::floor(static_cast<double>(size) / share)) == resized;
  return is_exact ? share : static_cast<double>(size) / (static_cast<double>(resized) + 0.5);
}

/// timm's pretrained_cfg. Errors: kInvalidArgument for pixels that timm's transforms do not make.
Result<io::Tree> pretrained_cfg(const Processor& p, int64_t classes, const std::string& source) {
  const auto refused = [&](const std::string& what) {
    return Error{ErrorCode::kInvalidArgument, "timm has no transform for this processor: " + what, source,
                 "export a model that was trained with data.images.resize=exact"};
  };
  if (std::abs(p.rescale * 255 - 1) > 1e-6) return refused("it rescales by another factor than 1/255");
  const bool is_shortest = p.resize == images::Resize::kShortest;
  if (is_shortest && p.height != p.width) return refused("it crops no square");
  const bool resizes = p.resize == images::Resize::kExact && p.crop == images::Crop::kCenter;
  if (resizes && p.resize_height * p.width != p.resize_width * p.height)
    return refused("it resizes height and width by different factors before it crops");
  const int64_t resized = is_shortest ? p.shortest : resizes ? p.resize_height : p.height;
  if (resized < p.height) return refused("it crops more than it resizes to");
  return io::Tree::map({{"input_size", list_of(std::array{int64_t{3}, p.height, p.width})},
                        {"interpolation", io::Tree::of(std::string(images::name(p.interpolation)))},
                        {"crop_pct", io::Tree::of(crop_share(p.height, resized))},
                        {"crop_mode", io::Tree::of(std::string(is_shortest ? "center" : "squash"))},
                        {"mean", list_of(p.mean)},
                        {"std", list_of(p.std)},
                        {"num_classes", io::Tree::of(classes)}});
}

class TimmExporter : public TensorRewrite {
 public:
  explicit TimmExporter(const TimmExport& request) : request_(request) {}

  Result<TimmReport> operator()() {
    const auto start = std::chrono::steady_clock::now();
    PLIMSOLL_ASSIGN(folder_, io::find_whole_model(request_.model));
    PLIMSOLL_TRY(check_rewrite_output(folder_, request_.output, "exported model"));
    PLIMSOLL_ASSIGN(const io::ConfigJson config, io::read_config_json(folder_ + "/config.json"));
    if (config.has("architecture"))
      return Error{ErrorCode::kInvalidArgument, "the model is in timm's form already", folder_, "copy it"};
    PLIMSOLL_ASSIGN(const models::TimmName timms, models::timm_architecture(config));
    report_.architecture = timms.architecture;
    PLIMSOLL_ASSIGN(model_, models::make_image_model(config));
    PLIMSOLL_ASSIGN(io::ModelWeights weights, io::ModelWeights::open(folder_));
    weights_.emplace(std::move(weights));
    PLIMSOLL_TRY(check_weights());
    PLIMSOLL_TRY(describe(config, timms.pool));
    PLIMSOLL_ASSIGN(const RewriteReport written, rewrite_model(*weights_, request_.output, *this));
    report_.num_tensors = written.num_written;
    report_.bytes = written.bytes;
    report_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return report_;
  }

  [[nodiscard]] std::vector<io::SafetensorsEntry> entries(const io::WeightRef& ref) const override {
    const std::string name = timms_name(ref.tensor->name);
    const models::RowPart part = model_->other_part(full_name(ref.tensor->name));
    if (name.empty() || part.index > 0) return {};
    std::vector<int64_t> shape = ref.tensor->shape;
    if (part.count > 1) shape.front() *= part.count;
    return {{name, ref.tensor->dtype, std::move(shape)}};
  }

  Status write(const io::WeightRef& ref, std::span<const int64_t> at, io::OutputFile& out) override {
    if (at.empty()) return Ok{};
    int64_t to = at[0];
    for (const io::WeightRef& part : parts_of(ref)) {
      const int64_t place[] = {to};
      PLIMSOLL_TRY(TensorRewrite::write(part, place, out));
      to += part.tensor->bytes;
    }
    return Ok{};
  }

  [[nodiscard]] Result<std::string> config(const io::ConfigJson& /*config*/,
                                           std::string /*text*/) const override {
    return io::to_json(config_) + "\n";
  }

 private:
  [[nodiscard]] std::string full_name(const std::string& name) const {
    const std::string_view prefix = model_->base_prefix();
    const bool is_bare = !name.starts_with(prefix) && !model_->is_of_head(name);
    return is_bare ? std::string(prefix) + name : name;
  }
  [[nodiscard]] std::string timms_name(const std::string& name) const {
    return model_->other_name(full_name(name));
  }

  /// The tensors that become the one of `first`, in timm's order.
  [[nodiscard]] std::vector<io::WeightRef> parts_of(const io::WeightRef& first) const {
    const std::string name = timms_name(first.tensor->name);
    std::vector<io::WeightRef> parts(
        static_cast<size_t>(model_->other_part(full_name(first.tensor->name)).count), first);
    if (parts.size() > 1)
      for (const std::string_view other : weights_->names())
        if (timms_name(std::string(other)) == name)
          parts[static_cast<size_t>(model_->other_part(full_name(std::string(other))).index)] =
              *weights_->find(other);
    return parts;
  }

  /// Whether the tensors are the model's, in one file, and parts of one tensor have one dtype.
  [[nodiscard]] Status check_weights() const {
    PLIMSOLL_ASSIGN(const checkpoints::WeightMatch match, checkpoints::match_weights(*model_, *weights_));
    PLIMSOLL_TRY(checkpoints::check_match(match, *weights_));
    if (weights_->files().size() != 1)
      return Error{ErrorCode::kInvalidArgument, "the weights are in several files, and timm opens one",
                   folder_, "save the model in one file: output.max_shard_size"};
    for (const std::string_view name : weights_->names())
      for (const io::WeightRef& part : parts_of(*weights_->find(name)))
        if (part.tensor->dtype != weights_->find(name)->tensor->dtype)
          return Error{ErrorCode::kBadData,
                       fmt::format("{} is {}, and the other parts of timm's tensor are not",
                                   io::shown_name(part.tensor->name), part.tensor->dtype),
                       folder_, "save the model in one dtype"};
    return Ok{};
  }

  /// The text of config.json, and what people should know.
  Status describe(const io::ConfigJson& config, const std::string& pool) {
    const std::string path = folder_ + "/" + kProcessorFile;
    PLIMSOLL_ASSIGN(const bool has_processor, io::path_exists(path));
    PLIMSOLL_ASSIGN(const int64_t size, config.integer("image_size", {1, 1 << 14}, 224));
    PLIMSOLL_ASSIGN(const Processor processor,
                    has_processor ? images::read_processor(path) : Result(images::default_processor(size)));
    // The positions of a vision transformer are those of one size.
    if (pool == "token" && (processor.height != size || processor.width != size))
      return Error{ErrorCode::kInvalidArgument,
                   fmt::format("the processor makes images of {} x {}, and image_size is {}",
                               processor.height, processor.width, size),
                   path, "export a model that was trained with images of its own size"};
    PLIMSOLL_ASSIGN(const io::LabelFields labels, io::read_label_fields(config));
    const int64_t classes = model_->num_labels();
    PLIMSOLL_ASSIGN(io::Tree prepared, pretrained_cfg(processor, classes, has_processor ? path : folder_));
    config_ = io::Tree::map({{"architecture", io::Tree::of(report_.architecture)},
                             {"num_classes", io::Tree::of(classes)},
                             {"global_pool", io::Tree::of(pool)},
                             {"pretrained_cfg", std::move(prepared)}});
    io::Tree names = io::Tree::list();
    for (const std::string& name : labels.names) names.items.push_back(io::Tree::of(name));
    if (classes > 0) config_.set("label_names", std::move(names));
    PLIMSOLL_ASSIGN(const double eps, config.number("layer_norm_eps", {0.0, 1.0}, kTimmEps));
    if (eps != kTimmEps)
      report_.notes.push_back(
          fmt::format("timm's norms have an epsilon of {:g}, the model's {:g}", kTimmEps, eps));
    return Ok{};
  }

  const TimmExport& request_;
  std::string folder_;
  std::unique_ptr<models::ImageModel> model_;
  std::optional<io::ModelWeights> weights_;
  io::Tree config_ = {};
  TimmReport report_;
};

}  // namespace

Result<TimmReport> export_timm(const TimmExport& request) { return TimmExporter(request)(); }

}  // namespace plimsoll::model_tools
