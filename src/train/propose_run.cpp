#include "train/propose_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "base/note.h"
#include "data/packing.h"
#include "io/hub_cache.h"
#include "io/yaml.h"
#include "models/presets.h"
#include "models/quantization_config.h"
#include "planner/verdict.h"
#include "settings/run_config.h"
#include "settings/settings.h"
#include "train/look_at_data.h"
#include "train/prepare.h"
#include "train/remedies.h"
#include "train/run_device.h"

namespace plimsoll::train {
namespace {

/// A line of the run file: a setting, its value, and why.
struct Choice {
  std::string path, value, why;
};

std::string text_of(const std::string& text) { return to_yaml_flow(Tree::of(text)); }

std::string list(const std::vector<std::string>& items) {
  if (items.size() == 1) return text_of(items.front());
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "[" : ", ") + text_of(item);
  return text + "]";
}

std::string stem(const std::string& path) {
  std::string name = std::filesystem::path(path).lexically_normal().filename().string();
  const std::filesystem::path parent = std::filesystem::path(path).lexically_normal().parent_path();
  if (name.empty()) name = parent.filename().string();     // "folder/"
  if (name == "final") name = parent.filename().string();  // of a run
  name = name.substr(0, name.find('.'));
  std::erase_if(name, [](char c) { return c == '*' || c == '?' || c == '[' || c == ']' || c == '/'; });
  return name.empty() ? "data" : name;
}

/// The run file as it is put together.
class Draft {
 public:
  void add(std::string path, std::string value, std::string why) {
    choices_.push_back({std::move(path), std::move(value), std::move(why)});
  }
  /// Another value for a setting that stands there, or a line for it.
  void change(const std::string& path, const std::string& value, const std::string& why) {
    const auto found = std::ranges::find(choices_, path, &Choice::path);
    if (found == choices_.end()) return add(path, value, why);
    found->value = value;
    found->why = why;
  }
  /// By sections, in the order in which they came first.
  [[nodiscard]] std::string yaml() const {
    std::vector<std::string> sections;
    for (const Choice& c : choices_)
      if (const std::string name = section(c); std::ranges::find(sections, name) == sections.end())
        sections.push_back(name);
    std::string out;
    for (const std::string& name : sections) {
      if (!name.empty()) out += name + ":\n";
      for (const Choice& c : choices_)
        if (section(c) == name) out += line(c);
    }
    return out;
  }

 private:
  /// Of "task" none, and of "training.state.moments", which stands with its whole name.
  static std::string section(const Choice& c) {
    const size_t dot = c.path.find('.');
    return dot == std::string::npos || dot != c.path.rfind('.') ? "" : c.path.substr(0, dot);
  }
  static std::string line(const Choice& c) {
    const std::string name = section(c);
    const std::string text = name.empty() ? fmt::format("{}: {}", c.path, c.value)
                                          : fmt::format("  {}: {}", c.path.substr(name.size() + 1), c.value);
    return c.why.empty() ? text + "\n" : fmt::format("{:<34} # {}\n", text, c.why);
  }
  std::vector<Choice> choices_;
};

/// The next multiple of 64 that nearly all examples fit, within the model's positions.
int64_t sequence_length(const DataLook& look, int64_t positions) {
  const int64_t most = std::min<int64_t>(positions, look.labelled ? 512 : 2048);
  if (look.lengths.empty() || look.kind == DataKind::kTexts) return std::min<int64_t>(most, 1024);
  const int64_t wanted = look.lengths[(look.lengths.size() - 1) * 99 / 100];
  return std::clamp<int64_t>((wanted + 63) / 64 * 64, std::min<int64_t>(64, most), most);
}

/// The least share that leaves two of the examples seen to evaluate on: which are held out goes by their
/// hashes, and of a few it may be none. Empty where nothing is held out.
std::string held_out(const DataLook& look) {
  if (look.examples < 50) return {};
  for (const auto& [share, text] : {std::pair(0.05, "0.05"), std::pair(0.1, "0.1"), std::pair(0.2, "0.2")})
    if (std::ranges::count_if(look.hashes, [&](uint64_t hash) { return on_eval_side(hash, share); }) >= 2)
      return text;
  return {};
}

void add_model(Draft& draft, const RunRequest& request) {
  std::error_code ignored;
  const auto preset = find_preset(request.model);
  const bool has_weights =
      std::filesystem::exists(request.model, ignored) || find_cached_model(request.model).ok();
  if (!preset || has_weights)
    return draft.add("model.path", text_of(request.model), "goes on from its weights");
  draft.add("model.preset", std::string(*preset), "the architecture alone: it begins with random weights");
  const auto known = presets();
  const auto info = std::ranges::find(known, *preset, &PresetInfo::name);
  note(fmt::format(
      "{} is neither a folder nor in the local Hugging Face cache: its architecture is taken, with random "
      "weights and without a tokenizer; hf download {} brings both",
      request.model, request.model.find('/') != std::string::npos ? request.model : info->hub_id));
}

void add_data(Draft& draft, const RunRequest& request, const DataLook& look, int64_t positions) {
  draft.add("data.train", list(request.data), look.text());
  if (!request.tokenizer.empty()) draft.add("data.tokenizer", text_of(request.tokenizer), "");
  if (const std::string share = held_out(look); !share.empty())
    draft.add("data.eval_fraction", share, "held out, by each example's hash; or give data.eval a file");
  const int64_t length = sequence_length(look, positions);
  std::string why =
      look.lengths.empty() || look.kind == DataKind::kTexts
          ? "tokens a sequence"
          : fmt::format("99 of 100 examples are within {} tokens, the longest seen has {}",
                        look.lengths[(look.lengths.size() - 1) * 99 / 100], look.lengths.back());
  draft.add("data.sequence_length", std::to_string(length), std::move(why));
  if (look.kind == DataKind::kConversations)
    draft.add("data.loss", "auto", "the assistant's turns; trl: whole conversations, as TRL's default");
}

void add_training(Draft& draft, const RunConfig& config, const DataLook& look, int64_t parameters,
                  const runtime::Target& target) {
  const bool pretrained = starts_pretrained(config.model);
  const bool small = look.examples < 2000;
  draft.add("training.global_batch_size", small ? "8" : "16",
            "sequences a step; how many at once follows from memory");
  draft.add("training.num_epochs", pretrained && small ? "3" : "1", "times over the data; or max_steps");
  const bool tiny = parameters < 50'000'000, large = parameters >= 1'000'000'000;
  const char* rate = pretrained ? (tiny    ? "1.0e-3"
                                   : large ? "2.0e-5"
                                           : "5.0e-5")
                                : (large ? "3.0e-4" : "6.0e-4");
  draft.add("training.learning_rate", rate,
            pretrained ? "usual for all weights of a trained model" : "usual for random weights");
  draft.add("training.lr_scheduler", "cosine", "");
  draft.add("training.warmup_ratio", "0.03", "");
  draft.add("training.weight_decay", "0.01", "");
  const std::string_view isa = target.instruction_set();
  const bool fast_bf16 = isa == "avx512_bf16" || isa == "amx";
  draft.add("training.precision", fast_bf16 ? "bf16" : "fp32",
            fast_bf16 ? "this machine multiplies bf16 faster; weights stay fp32"
                      : "bf16 is no faster on this machine");
  draft.add("training.logging_steps", "20", "a line every so many steps");
  draft.add("memory.budget", "auto", "what is free now, less a reserve; or 8GiB, 80%");
}

std::string header(const RunProposal& proposal) {
  std::string verdict = planner::verdict(proposal.report);
  return "# Written by plimsoll init, planned on this machine:\n# " + verdict +
         "# plimsoll plan says what is used where; every setting: plimsoll train --help, docs/settings.md\n";
}

Result<Prepared> plan(const std::string& yaml, int num_threads) {
  PLIMSOLL_ASSIGN(const RunConfig config, parse_run_config(yaml, "the proposed run"));
  const auto target = make_target(config, num_threads);
  PLIMSOLL_ASSIGN(Prepared prepared, prepare(config, *target, {.num_threads = num_threads}));
  add_remedies(config, *target, {.num_threads = num_threads}, prepared);
  return prepared;
}

}  // namespace

Result<RunProposal> propose_run(const RunRequest& request) {
  Draft draft;
  add_model(draft, request);
  Draft first = draft;
  first.add("data.train", list(request.data), "");
  if (!request.tokenizer.empty()) first.add("data.tokenizer", text_of(request.tokenizer), "");
  PLIMSOLL_ASSIGN(const RunConfig config, parse_run_config(first.yaml(), "what was asked for"));
  PLIMSOLL_ASSIGN(const ConfigJson model_config, load_model_config(config.model));
  PLIMSOLL_ASSIGN(const auto model, models::make_model(model_config));
  PLIMSOLL_ASSIGN(const auto stored, models::read_quantization_config(model_config));
  if (stored) {
    draft.add("lora.r", "16",
              fmt::format("adapters, beside weights that are {}", models::quantized_name(stored->dtype)));
    draft.add("lora.target_modules", "all-linear", "");
  }
  PLIMSOLL_ASSIGN(const DataLook look, look_at_data(config));
  if (look.labelled) draft.add("task", "sequence_classification", "");
  add_data(draft, request, look, model->max_positions());
  add_training(draft, config, look, model->num_parameters(), *make_target(config, request.num_threads));
  RunProposal proposal;
  proposal.output_dir = request.output_dir.empty()
                            ? "runs/" + stem(request.model) + "-" + stem(request.data.front())
                            : request.output_dir;
  draft.add("output.dir", text_of(proposal.output_dir), "checkpoints, and final/: a Hugging Face directory");
  draft.add("output.save_steps", "200", "");
  draft.add("output.save_total_limit", "2", "");
  PLIMSOLL_ASSIGN(Prepared prepared, plan(draft.yaml(), request.num_threads));
  if (!prepared.report.fits && !prepared.report.remedies.empty()) {
    for (const auto& [path, value] : prepared.report.remedies.front().settings)
      draft.change(path, value, "so that it fits: " + prepared.report.remedies.front().note);
    PLIMSOLL_ASSIGN(prepared, plan(draft.yaml(), request.num_threads));
  }
  if (!prepared.report.fits) return does_not_fit(prepared);
  proposal.report = std::move(prepared.report);
  proposal.yaml = header(proposal) + draft.yaml();
  return proposal;
}

}  // namespace plimsoll::train
