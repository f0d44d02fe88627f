// A model's folder: what config.json says, what the weights are, and whether the one is that of the other.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <memory>
#include <optional>

#include "base/numbers.h"
#include "base/units.h"
#include "checkpoints/load_weights.h"
#include "cli/inspect/inspect.h"
#include "cli/table.h"
#include "models/families.h"
#include "models/quantization_config.h"

namespace plimsoll::cli {
namespace {

/// Fields that say how large a model is, in the spellings of all families.
std::vector<std::string_view> size_fields() {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name) {
    if (!name.empty() && std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  const auto add_all = [&](models::FieldNames models::SizeFields::*size) {
    for (const auto family : models::kFamilies)
      for (const std::string_view name : family().fields.*size) add(name);
  };
  using Fields = models::SizeFields;
  for (const auto size : {&Fields::vocabulary, &Fields::hidden, &Fields::inner, &Fields::layers,
                          &Fields::heads, &Fields::kv_heads})
    add_all(size);
  add("head_dim");
  add_all(&Fields::positions);
  add("sliding_window");
  add("tie_word_embeddings");
  return names;
}

constexpr std::array kTokenizerFiles = {"tokenizer.json",
                                        "tokenizer_config.json",
                                        "tokenizer.model",
                                        "sentencepiece.bpe.model",
                                        "spiece.model",
                                        "vocab.json",
                                        "merges.txt",
                                        "vocab.txt",
                                        "special_tokens_map.json",
                                        "added_tokens.json",
                                        "chat_template.jinja"};

void add_config(Facts& facts, const io::ConfigJson& config) {
  const auto family = config.model_type();
  const io::Tree* architectures = config.fields().find("architectures");
  const bool named = architectures && !architectures->items.empty();
  facts.add("family", family ? io::Tree::of(*family) : io::Tree{}, "family",
            (family ? *family : "unknown") + (named ? " (" + architectures->items[0].text + ")" : ""));
  io::Tree sizes = io::Tree::map();
  std::string text;
  for (const std::string_view field : size_fields()) {
    const io::Tree* value = config.fields().find(field);
    if (!value || value->is_null() || !value->is_scalar()) continue;
    sizes.set(field, *value);
    text += (text.empty() ? "" : ", ") + fmt::format("{} {}", field, io::to_json(*value));
  }
  facts.add("config", std::move(sizes), "config", text);
}

void add_tokenizer(Facts& facts, const std::string& directory) {
  std::vector<io::Tree> files;
  std::string text;
  for (const char* file : kTokenizerFiles) {
    std::error_code code;
    if (!std::filesystem::exists(directory + "/" + file, code)) continue;
    files.push_back(io::Tree::of(std::string(file)));
    text += (text.empty() ? "" : ", ") + std::string(file);
  }
  facts.add("tokenizer_files", io::Tree::list(std::move(files)), "tokenizer", text.empty() ? "none" : text);
}

void add_weights(Facts& facts, const io::ModelWeights& weights, const std::vector<io::WeightRef>& refs) {
  std::vector<io::Tree> files;
  for (const io::SafetensorsFile& file : weights.files()) {
    const std::string name = std::filesystem::path(file.path()).filename().string();
    const auto tensors = tensors_of(file);
    files.push_back(io::Tree::map({{"name", io::Tree::of(name)},
                                   {"bytes", io::Tree::of(file.size_bytes())},
                                   {"tensors", io::Tree::of(static_cast<int64_t>(tensors.size()))}}));
    facts.line(files.size() == 1 ? "weights" : "",
               fmt::format("{}: {}, {}, {}", name, counted(static_cast<int64_t>(tensors.size()), "tensor"),
                           to_string(Bytes(file.size_bytes())), dtypes_text(tensors)));
  }
  facts.add("files", io::Tree::list(std::move(files)));
  add_totals(facts, refs);
}

io::Tree shape_tree(std::span<const int64_t> shape) {
  std::vector<io::Tree> extents;
  for (const int64_t extent : shape) extents.push_back(io::Tree::of(extent));
  return io::Tree::list(std::move(extents));
}

std::string shape_text(std::span<const int64_t> shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

io::Tree stored_tree(const io::SafetensorsTensor& tensor) {
  return io::Tree::map({{"name", io::Tree::of(tensor.name)},
                        {"dtype", io::Tree::of(tensor.dtype)},
                        {"shape", shape_tree(tensor.shape)}});
}

/// All of a kind: a list in the object, a line each.
template <typename Items, typename Describe>
io::Tree add_kind(Facts& facts, const std::string& label, const Items& items, Describe&& describe) {
  std::vector<io::Tree> list;
  for (const auto& item : items) {
    auto [tree, text] = describe(item);
    facts.line(list.empty() ? label : "", text);
    list.push_back(std::move(tree));
  }
  return io::Tree::list(std::move(list));
}

void add_match(Facts& facts, const checkpoints::WeightMatch& match, const std::optional<Error>& problem) {
  const auto stored = [](const io::WeightRef& ref) {
    return std::pair{stored_tree(*ref.tensor), ref.tensor->name + " " + to_string(*ref.tensor)};
  };
  const auto missing = [](const models::ParameterView* view) {
    const ir::Shape shape = view->file_shape();
    return std::pair{io::Tree::map({{"name", io::Tree::of(view->name)}, {"shape", shape_tree(shape.dims())}}),
                     view->name + " " + shape_text(shape.dims())};
  };
  const auto misshaped = [&](const checkpoints::WeightSource& source) {
    auto [tree, text] = stored(source.weight);
    const ir::Shape expected = source.view->file_shape();
    tree.set("expected", shape_tree(expected.dims()));
    return std::pair{std::move(tree), text + ", expected " + shape_text(expected.dims())};
  };
  const auto unreadable = [&](const checkpoints::WeightSource& source) { return stored(source.weight); };
  facts.line("match",
             problem ? "the tensors are not those of the config:" : "the tensors are those of the config");
  io::Tree object = io::Tree::map({{"fits", io::Tree::of(!problem)}});
  object.set("missing", add_kind(facts, "missing", match.missing, missing));
  object.set("misshaped", add_kind(facts, "misshaped", match.misshaped, misshaped));
  object.set("unreadable", add_kind(facts, "unreadable", match.unreadable, unreadable));
  object.set("otherwise", add_kind(facts, "not quantized as stated", match.otherwise, unreadable));
  object.set("extra", add_kind(facts, "extra", match.extra, stored));
  object.set("ignored", add_kind(facts, "ignored", match.ignored, stored));
  if (problem && match.fits()) {
    facts.line("", problem->what);
    object.set("problem", io::Tree::of(problem->what));
  }
  facts.add("match", std::move(object));
}

/// The model of the config; what keeps it from being one is a fact, not an error.
std::unique_ptr<models::Model> add_model(Facts& facts, const io::ConfigJson& config) {
  auto model = models::make_model(config);
  if (!model) {
    facts.add("supported", io::Tree::of(false));
    facts.add("problem", io::Tree::of(model.error().what), "problem",
              "not a model of this program: " + model.error().what);
    return nullptr;
  }
  facts.add("supported", io::Tree::of(true));
  const int64_t parameters = (*model)->num_parameters();
  facts.add("parameters", io::Tree::of(parameters), "parameters", grouped(parameters));
  std::vector<io::Tree> unread;
  std::string text;
  for (const std::string& field : (*model)->unknown_fields()) {
    unread.push_back(io::Tree::of(field));
    text += (text.empty() ? "" : ", ") + field;
  }
  facts.add("fields_not_read", io::Tree::list(std::move(unread)), text.empty() ? "" : "not read", text);
  return std::move(model).value();
}

/// What of it the files have in few bits.
Status add_quantization(Facts& facts, const io::ConfigJson& config, models::Model& model) {
  PLIMSOLL_ASSIGN(auto stored, models::read_quantization_config(config));
  if (!stored) return Ok{};
  stored->learns = false;
  const std::string name(models::quantized_name(stored->dtype));
  facts.add("quantized", io::Tree::of(name), "quantized", name);
  return models::quantize(model, *stored);
}

}  // namespace

Status inspect_model(const std::string& directory, const InspectArguments& arguments) {
  PLIMSOLL_ASSIGN(const io::ConfigJson config, io::read_config_json(directory + "/config.json"));
  Facts facts("model");
  facts.add("path", io::Tree::of(directory), "model", directory);
  add_config(facts, config);
  const auto model = add_model(facts, config);
  if (model) PLIMSOLL_TRY(add_quantization(facts, config, *model));
  const auto weights = io::ModelWeights::open(directory);
  std::vector<io::WeightRef> refs;
  std::optional<Error> problem;
  if (weights) {
    for (const std::string_view name : weights->names()) refs.push_back(*weights->find(name));
    add_weights(facts, *weights, refs);
  } else {
    const Error& error = weights.error();
    facts.add("weights_problem", io::Tree::of(error.what), "weights", error.what);
    if (io::ModelWeights::are_in(directory)) problem = error;
  }
  add_tokenizer(facts, directory);
  if (model && weights) {
    if (const auto match = checkpoints::match_weights(*model, *weights)) {
      if (auto fits = checkpoints::check_match(*match, *weights); !fits) problem = std::move(fits).error();
      add_match(facts, *match, problem);
    } else {
      facts.add("match_problem", io::Tree::of(match.error().what), "match", match.error().what);
      problem = match.error();
    }
  }
  facts.print(arguments.json);
  if (arguments.tensors && weights) PLIMSOLL_TRY(print_tensors(std::move(refs), arguments.json));
  return problem ? Status(*problem) : Status(Ok{});
}

}  // namespace plimsoll::cli
