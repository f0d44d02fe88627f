#include "models/timm.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>
#include <vector>

#include "io/json.h"
#include "io/label_fields.h"

namespace plimsoll::models {
namespace {

/// An architecture by timm's name, and what config.json says of it in transformers' form.
struct TimmArchitecture {
  std::string_view name, class_name, config;
  std::string_view pool = "avg";  ///< what the head reads
  bool has_head = true;           ///< a head as the family's here; else none is read or written
};

constexpr TimmArchitecture kTimmArchitectures[] = {
    {"resnet18", "ResNet",
     R"({"model_type": "resnet", "embedding_size": 64, "hidden_sizes": [64, 128, 256, 512],
      "depths": [2, 2, 2, 2], "layer_type": "basic"})"},
    {"resnet34", "ResNet",
     R"({"model_type": "resnet", "embedding_size": 64, "hidden_sizes": [64, 128, 256, 512],
      "depths": [3, 4, 6, 3], "layer_type": "basic"})"},
    {"resnet50", "ResNet",
     R"({"model_type": "resnet", "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048],
      "depths": [3, 4, 6, 3], "layer_type": "bottleneck"})"},
    {"resnet101", "ResNet",
     R"({"model_type": "resnet", "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048],
      "depths": [3, 4, 23, 3], "layer_type": "bottleneck"})"},
    {"resnet152", "ResNet",
     R"({"model_type": "resnet", "embedding_size": 64, "hidden_sizes": [256, 512, 1024, 2048],
      "depths": [3, 8, 36, 3], "layer_type": "bottleneck"})"},
    {"convnext_tiny", "ConvNext",
     R"({"model_type": "convnext", "hidden_sizes": [96, 192, 384, 768], "depths": [3, 3, 9, 3],
      "layer_norm_eps": 1e-06})"},
    {"convnext_small", "ConvNext",
     R"({"model_type": "convnext", "hidden_sizes": [96, 192, 384, 768], "depths": [3, 3, 27, 3],
      "layer_norm_eps": 1e-06})"},
    {"convnext_base", "ConvNext",
     R"({"model_type": "convnext", "hidden_sizes": [128, 256, 512, 1024], "depths": [3, 3, 27, 3],
      "layer_norm_eps": 1e-06})"},
    {"convnext_large", "ConvNext",
     R"({"model_type": "convnext", "hidden_sizes": [192, 384, 768, 1536], "depths": [3, 3, 27, 3],
      "layer_norm_eps": 1e-06})"},
    {"vit_tiny_patch16_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 192, "num_hidden_layers": 12, "num_attention_heads": 3,
      "intermediate_size": 768, "image_size": 224, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_tiny_patch16_384", "ViT",
     R"({"model_type": "vit", "hidden_size": 192, "num_hidden_layers": 12, "num_attention_heads": 3,
      "intermediate_size": 768, "image_size": 384, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_small_patch16_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6,
      "intermediate_size": 1536, "image_size": 224, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_small_patch16_384", "ViT",
     R"({"model_type": "vit", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6,
      "intermediate_size": 1536, "image_size": 384, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_small_patch32_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6,
      "intermediate_size": 1536, "image_size": 224, "patch_size": 32, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_small_patch32_384", "ViT",
     R"({"model_type": "vit", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6,
      "intermediate_size": 1536, "image_size": 384, "patch_size": 32, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_base_patch16_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "intermediate_size": 3072, "image_size": 224, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_base_patch16_384", "ViT",
     R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "intermediate_size": 3072, "image_size": 384, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_base_patch32_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "intermediate_size": 3072, "image_size": 224, "patch_size": 32, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_base_patch32_384", "ViT",
     R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "intermediate_size": 3072, "image_size": 384, "patch_size": 32, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_large_patch16_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
      "intermediate_size": 4096, "image_size": 224, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_large_patch16_384", "ViT",
     R"({"model_type": "vit", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
      "intermediate_size": 4096, "image_size": 384, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_large_patch32_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
      "intermediate_size": 4096, "image_size": 224, "patch_size": 32, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_large_patch32_384", "ViT",
     R"({"model_type": "vit", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
      "intermediate_size": 4096, "image_size": 384, "patch_size": 32, "layer_norm_eps": 1e-06})",
     "token"},
    {"deit_tiny_patch16_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 192, "num_hidden_layers": 12, "num_attention_heads": 3,
      "intermediate_size": 768, "image_size": 224, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"deit_small_patch16_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6,
      "intermediate_size": 1536, "image_size": 224, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"deit_base_patch16_224", "ViT",
     R"({"model_type": "vit", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "intermediate_size": 3072, "image_size": 224, "patch_size": 16, "layer_norm_eps": 1e-06})",
     "token"},
    {"vit_small_patch14_dinov2", "Dinov2",
     R"({"model_type": "dinov2", "hidden_size": 384, "num_hidden_layers": 12, "num_attention_heads": 6,
      "mlp_ratio": 4, "use_swiglu_ffn": false, "image_size": 518, "patch_size": 14,
      "layer_norm_eps": 1e-06})",
     "token", false},
    {"vit_base_patch14_dinov2", "Dinov2",
     R"({"model_type": "dinov2", "hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
      "mlp_ratio": 4, "use_swiglu_ffn": false, "image_size": 518, "patch_size": 14,
      "layer_norm_eps": 1e-06})",
     "token", false},
    {"vit_large_patch14_dinov2", "Dinov2",
     R"({"model_type": "dinov2", "hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16,
      "mlp_ratio": 4, "use_swiglu_ffn": false, "image_size": 518, "patch_size": 14,
      "layer_norm_eps": 1e-06})",
     "token", false},
    {"vit_giant_patch14_dinov2", "Dinov2",
     R"({"model_type": "dinov2", "hidden_size": 1536, "num_hidden_layers": 40, "num_attention_heads": 24,
      "mlp_ratio": 4, "use_swiglu_ffn": true, "image_size": 518, "patch_size": 14,
      "layer_norm_eps": 1e-06})",
     "token", false},
};

/// What an architecture's config does not say, because all have it: another value is another architecture.
constexpr std::pair<std::string_view, std::string_view> kTimmHas[] = {
    {"num_channels", "3"}, {"downsample_in_bottleneck", "false"},
    {"qkv_bias", "true"},  {"downsample_in_first_stage", "false"},
    {"patch_size", "4"},   {"interpolate_pos_encoding", "false"}};
/// What changes no shape: the rounding of a norm, or how the model is trained.
constexpr std::string_view kTimmLeavesOpen[] = {"model_type", "layer_norm_eps"};

std::string timm_names() {
  std::string names;
  for (const TimmArchitecture& known : kTimmArchitectures)
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  return names;
}

/// label_names where there is one for each class, else the default names.
std::vector<std::string> timm_labels(const io::ConfigJson& config, int64_t classes) {
  const io::Tree* names = config.fields().find("label_names");
  if (names == nullptr || static_cast<int64_t>(names->items.size()) != classes)
    return io::default_label_names(classes);
  std::vector<std::string> labels;
  for (const io::Tree& name : names->items) labels.push_back(name.text);
  std::vector<std::string> sorted = labels;
  std::ranges::sort(sorted);
  const bool is_unique = std::ranges::adjacent_find(sorted) == sorted.end();
  return is_unique ? labels : io::default_label_names(classes);
}

/// What stands at the hashes of `pattern` where `name` begins so, and what follows.
struct Begun {
  std::vector<int64_t> numbers = {};
  std::string_view rest = {};
};
std::optional<Begun> begins_with(std::string_view name, std::string_view pattern) {
  Begun begun;
  for (const char c : pattern) {
    if (c != '#') {
      if (!name.starts_with(c)) return std::nullopt;
      name.remove_prefix(1);
      continue;
    }
    int64_t number = 0;
    const auto [end, code] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (code != std::errc()) return std::nullopt;
    name.remove_prefix(static_cast<size_t>(end - name.data()));
    begun.numbers.push_back(number);
  }
  begun.rest = name;
  return begun;
}

bool is_same(const io::Tree& a, const io::Tree& b) {
  const auto value = [](const io::Tree& t) {
    return t.kind == io::Tree::Kind::kInteger ? static_cast<double>(t.integer) : t.number;
  };
  const auto is_number = [](const io::Tree& t) {
    return t.kind == io::Tree::Kind::kInteger || t.kind == io::Tree::Kind::kNumber;
  };
  if (is_number(a) && is_number(b)) return value(a) == value(b);
  return io::to_json(a) == io::to_json(b);
}

/// Fields of `config` that make it another network than timm's.
std::vector<std::string> differing_fields(const io::ConfigJson& config, const io::ConfigJson& timms) {
  std::vector<std::string> fields;
  for (const auto& [name, value] : timms.fields().members) {
    if (std::ranges::find(kTimmLeavesOpen, name) != std::end(kTimmLeavesOpen)) continue;
    const io::Tree* own = config.fields().find(name);
    if (own == nullptr || !is_same(*own, value)) fields.push_back(name);
  }
  for (const auto& [name, value] : kTimmHas) {
    const io::Tree* own = config.fields().find(name);
    if (own != nullptr && timms.fields().find(name) == nullptr && io::to_json(*own) != value)
      fields.emplace_back(name);
  }
  const std::string_view act = timms.fields().find("model_type")->text == "resnet" ? "relu" : "gelu";
  const io::Tree* own = config.fields().find("hidden_act");
  if (own != nullptr && own->text != act) fields.emplace_back("hidden_act");
  return fields;
}

}  // namespace

std::string renamed(std::span<const Renaming> rows, std::string_view name) {
  for (const Renaming& row : rows) {
    const auto begun = begins_with(name, row.ours);
    if (!begun) continue;
    std::string other;
    size_t next = 0;
    for (const char c : row.theirs) {
      if (c == '#' || c == '+')
        other += std::to_string(begun->numbers[next++] + (c == '+' ? 1 : 0));
      else
        other += c;
    }
    return other + std::string(begun->rest);
  }
  return {};
}

Result<io::ConfigJson> from_timm(io::ConfigJson config) {
  const bool is_wrapped =
      config.has("model_type") && config.fields().find("model_type")->text == "timm_wrapper";
  if (!config.has("architecture") || (config.has("model_type") && !is_wrapped)) return config;
  PLIMSOLL_ASSIGN(const std::string name, config.string("architecture"));
  const auto known = std::ranges::find(kTimmArchitectures, name, &TimmArchitecture::name);
  if (known == std::end(kTimmArchitectures))
    return config.error("architecture", "one of " + timm_names(), "other architectures of timm are not read");
  if (const io::Tree* arguments = config.fields().find("model_args");
      arguments != nullptr && !arguments->members.empty())
    return config.error("model_args", "none", "they change the architecture");
  const std::string expected(known->pool);
  PLIMSOLL_ASSIGN(const std::string pool, config.string("global_pool", expected));
  if (pool != expected) return config.error("global_pool", expected, "other pooling is not supported");
  PLIMSOLL_ASSIGN(const int64_t classes, config.integer("num_classes", {0, io::kMaxLabels}, 1000));
  if (classes > 0 && !known->has_head)
    return config.error("num_classes", "0",
                        "its head reads the class token alone; without it a run gets one");
  PLIMSOLL_ASSIGN(io::ConfigJson own, io::parse_config_json(known->config, config.source()));
  // How its images are prepared.
  if (const io::Tree* prepared = config.fields().find("pretrained_cfg"); prepared != nullptr)
    own.set("pretrained_cfg", *prepared);
  const std::string class_name(known->class_name);
  if (classes == 0)
    own.set("architectures", io::Tree::list({io::Tree::of(class_name + "Model")}));
  else
    io::set_labels(own, class_name + "ForImageClassification",
                   {io::ProblemType::kSingleLabel, timm_labels(config, classes)});
  return own;
}

Result<TimmName> timm_architecture(const io::ConfigJson& config) {
  PLIMSOLL_ASSIGN(const std::string type, config.model_type());
  std::string nearest;  // the field that differs, where all else is the same
  for (const TimmArchitecture& known : kTimmArchitectures) {
    PLIMSOLL_ASSIGN(const io::ConfigJson own, io::parse_config_json(known.config, "timm"));
    if (own.fields().find("model_type")->text != type) continue;
    if (!known.has_head && io::is_image_classifier(config))
      return config.error("architectures", "a model without a head",
                          "timm's head of this family reads the class token alone");
    const std::vector<std::string> other = differing_fields(config, own);
    if (other.empty()) return TimmName{std::string(known.name), std::string(known.pool)};
    if (other.size() == 1) nearest = other.front();
  }
  const std::string known = "the sizes of one of " + timm_names();
  if (!nearest.empty()) return config.error(nearest, "timm's value", "timm has " + known);
  return Error{ErrorCode::kInvalidArgument, "timm has no architecture of this config", config.source(),
               "export a model with " + known};
}

Result<io::ConfigJson> read_model_config(const std::string& path) {
  PLIMSOLL_ASSIGN(io::ConfigJson config, io::read_config_json(path));
  return from_timm(std::move(config));
}

}  // namespace plimsoll::models
