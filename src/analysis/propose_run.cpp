#include "analysis/propose_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "analysis/examine_data.h"
#include "analysis/propose_images.h"
#include "analysis/remedies.h"
#include "analysis/run_draft.h"
#include "base/host.h"
#include "base/numbers.h"
#include "base/units.h"
#include "datasets/packing.h"
#include "io/hub_cache.h"
#include "io/yaml.h"
#include "models/classifier.h"
#include "models/language_model.h"
#include "models/presets.h"
#include "models/quantization_config.h"
#include "planner/report/headline.h"
#include "settings/named_profile.h"
#include "settings/run_config.h"
#include "settings/settings.h"
#include "strategy/prepare.h"
#include "strategy/run_device.h"

namespace plimsoll::analysis {
namespace {

constexpr int64_t kUsualRank = 16;

std::string text_of(const std::string& text) { return io::to_yaml_flow(io::Tree::of(text)); }

std::string list(const std::vector<std::string>& items) {
  if (items.size() == 1) return text_of(items.front());
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "[" : ", ") + text_of(item);
  return text + "]";
}

/// What a run is named by: of a file its name to the first dot, of a model all of it, Qwen2.5-7B.
std::string stem(const std::string& path, bool is_file) {
  std::string name = std::filesystem::path(path).lexically_normal().filename().string();
  const std::filesystem::path parent = std::filesystem::path(path).lexically_normal().parent_path();
  if (name.empty()) name = parent.filename().string();     // "folder/"
  if (name == "final") name = parent.filename().string();  // of a run
  if (is_file) name = name.substr(0, name.find('.'));
  std::erase_if(name, [](char c) { return c == '*' || c == '?' || c == '[' || c == ']' || c == '/'; });
  return name.empty() ? "data" : name;
}

/// What 99 of 100 examples are within.
int64_t usual_length(const DataLook& look) { return look.lengths[(look.lengths.size() - 1) * 99 / 100]; }

/// The next multiple that nearly all examples fit, within the model's positions: rows with labels are padded
/// to it, sequences of other kinds are packed.
int64_t sequence_length(const DataLook& look, int64_t positions) {
  if (look.asks) return std::min<int64_t>(positions, 384);  // longer texts become windows
  const int64_t most = std::min<int64_t>(positions, look.labelled ? 512 : 2048);
  if (look.lengths.empty() || (look.kind == DataKind::kTexts && !look.labelled))
    return std::min<int64_t>(most, 1024);
  const int64_t unit = look.labelled ? 8 : 64;
  const int64_t wanted = ceil_div(usual_length(look), unit) * unit;
  return std::clamp<int64_t>(wanted, std::min<int64_t>(unit, most), most);
}

/// Whether two of the examples seen are held out at least, and no class that was seen is held out whole.
bool divides(const DataLook& look, double share) {
  const auto is_held_out = [&](size_t i) { return datasets::on_eval_side(look.hashes[i], share); };
  std::set<std::string> trained;
  int64_t count = 0;
  for (size_t i = 0; i < look.hashes.size(); ++i)
    if (is_held_out(i))
      ++count;
    else if (i < look.classes.size() && !look.classes[i].empty())
      trained.insert(look.classes[i]);
  return count >= 2 && trained == look.labels;
}

/// The least share that divides the examples so: which are held out goes by their hashes, and of a few it may
/// be none. Empty where nothing is held out.
std::string held_out(const DataLook& look) {
  if (look.examples < 50) return {};
  for (const auto& [share, text] : {std::pair(0.05, "0.05"), std::pair(0.1, "0.1"), std::pair(0.2, "0.2")})
    if (divides(look, share)) return text;
  return {};
}

void add_model(RunDraft& draft, const RunRequest& request) {
  std::error_code ignored;
  const auto preset = models::find_preset(request.model);
  const bool has_weights =
      std::filesystem::exists(request.model, ignored) || io::find_cached_model(request.model).ok();
  if (!preset || has_weights)
    return draft.add("model.path", text_of(request.model), "training continues from its weights");
  draft.add("model.preset", std::string(*preset),
            "the architecture only: training begins with random weights");
  const auto known = models::presets();
  const auto info = std::ranges::find(known, *preset, &models::PresetInfo::name);
  note(fmt::format(
      "{} is neither a folder nor in the local Hugging Face cache: its architecture is used, with random "
      "weights and without a tokenizer; hf download {} fetches both",
      request.model, request.model.find('/') != std::string::npos ? request.model : info->hub_id));
}

void add_data(RunDraft& draft, const RunRequest& request, const DataLook& look, int64_t positions) {
  draft.add("data.train", list(request.data), look.text());
  if (!request.tokenizer.empty()) draft.add("data.tokenizer", text_of(request.tokenizer), "");
  if (const std::string share = held_out(look); !share.empty())
    draft.add("data.eval_fraction", share, "held out, by each example's hash; or give data.eval a file");
  const int64_t length = sequence_length(look, positions);
  std::string why = "tokens per sequence";
  if (!look.lengths.empty() && (look.labelled || look.asks || look.kind != DataKind::kTexts))
    why = fmt::format("99 of 100 examples are within {} tokens, the longest seen has {}", usual_length(look),
                      look.lengths.back());
  if (look.labelled && look.lengths.back() > length) why += "; longer rows are truncated";
  if (look.asks && look.lengths.back() > length) why += "; longer texts become windows";
  draft.add("data.sequence_length", std::to_string(length), std::move(why));
  // The question needs some of them, and windows have to move on.
  if (look.asks && length < 384)
    draft.add("qa.doc_stride", std::to_string(length / 4), "tokens that neighbouring windows share");
  if (look.kind == DataKind::kConversations)
    draft.add("data.loss", "auto", "assistant turns; trl: whole conversations, as TRL's default");
}

/// What the labels that were seen make of the task.
void add_labels(RunDraft& draft, const DataLook& look, bool is_encoder) {
  constexpr size_t kShown = 6;
  std::string why = "regression: numbers with a point";
  if (look.label_kind == corpora::RawLabelKind::kList)
    why = "by the lists: multi_label of 0 and 1, else regression";
  if (!look.labels.empty()) {
    std::string names;
    size_t shown = 0;
    for (const std::string& label : look.labels)
      if (++shown <= kShown) names += (names.empty() ? "" : ", ") + label;
    why = fmt::format("single_label, {} label{} seen: {}{}", look.labels.size(),
                      look.labels.size() == 1 ? "" : "s", names, shown > kShown ? ", …" : "");
    std::ranges::replace_if(
        why, [](unsigned char c) { return c < ' '; }, ' ');
  }
  draft.add("task", "sequence_classification",
            is_encoder ? "a head on each row's first token" : "a linear head on each row's last token");
  draft.add("classification.problem_type", "auto", std::move(why));
}

/// The usual adapters; the base stays as it is, in the 16 bits that products take anyway.
void add_lora(RunDraft& draft, int64_t rank, std::string why) {
  draft.add("lora.r", std::to_string(rank), std::move(why));
  draft.add("lora.lora_alpha", std::to_string(2 * rank), "their scale is lora_alpha / r");
  draft.add("lora.target_modules", "all-linear", "all linear layers but the head; or [q_proj, v_proj]");
}

void add_precision(RunDraft& draft, const settings::RunConfig& config, bool adapts,
                   const runtime::Target& target) {
  const std::string_view isa = target.instruction_set();
  const bool on_card = settings::is_for_card(config);
  const bool fast = on_card || isa == "avx512_bf16" || isa == "amx";
  const char* why = on_card ? "precision of products; trained parameters stay fp32"
                            : "bf16 is faster on this machine; trained parameters stay fp32";
  draft.add("training.precision", fast ? "bf16" : "fp32", fast ? why : "bf16 is no faster on this machine");
  if (fast && adapts)
    draft.add("training.state.weights", "bf16",
              "the frozen base model takes 2 bytes per parameter; adapters are fp32");
}

void add_training(RunDraft& draft, const settings::RunConfig& config, const DataLook& look,
                  int64_t parameters, bool adapts, bool is_encoder) {
  const bool pretrained = settings::starts_pretrained(config.model);
  const bool small = look.examples < 2000;
  draft.add("training.global_batch_size", small ? "8" : "16",
            "sequences per step; the micro-batch follows from memory");
  draft.add("training.num_epochs", pretrained && small ? "3" : "1", "epochs over the data; or max_steps");
  const bool tiny = parameters < 50'000'000 && !is_encoder, large = parameters >= 1'000'000'000;
  const char* rate = pretrained ? (tiny    ? "1.0e-3"
                                   : large ? "2.0e-5"
                                           : "5.0e-5")
                                : (large ? "3.0e-4" : "6.0e-4");
  if (adapts)
    draft.add("training.learning_rate", "2.0e-4", "usual for adapters");
  else
    draft.add("training.learning_rate", rate,
              pretrained ? "usual for full fine-tuning" : "usual for random weights");
  draft.add("training.lr_scheduler", "cosine", "");
  draft.add("training.warmup_ratio", "0.03", "");
  draft.add("training.weight_decay", "0.01", "");
}

/// Task, data and training for a language model.
Status draft_texts(RunDraft& draft, const RunRequest& request, const settings::RunConfig& config,
                   const io::ConfigJson& model_config, bool adapts) {
  PLIMSOLL_ASSIGN(const auto model, models::make_language_model(model_config));
  PLIMSOLL_ASSIGN(const DataLook look, look_at_data(config));
  const bool is_encoder = model->is_bidirectional();
  if (look.asks && !is_encoder)
    return model_config.error("model_type", "an encoder of text (bert, roberta, modernbert)",
                              "the data are questions about texts, whose answers encoders find");
  if (look.asks)
    draft.add("task", "question_answering", "the model finds the answers in the texts");
  else if (look.labelled)
    add_labels(draft, look, is_encoder);
  else if (is_encoder)
    draft.add("task", "masked_lm", "no labels were seen: 15 % of the tokens are hidden and predicted");
  add_data(draft, request, look, model->max_positions());
  add_training(draft, config, look, model->num_parameters(), adapts, is_encoder);
  return Ok{};
}

std::string header(const RunProposal& proposal, const settings::RunConfig& config) {
  std::string verdict = planner::headline(proposal.report);
  const std::string where = !settings::is_for_card(config)    ? "on this machine"
                            : settings::names_profile(config) ? "for " + config.runtime.profile
                                                              : "for " + config.runtime.device;
  return "# Written by plimsoll init, planned " + where + ":\n# " + verdict +
         "# plimsoll plan shows memory and time; plimsoll train --help and docs/settings.md list every "
         "setting\n";
}

Result<strategy::Prepared> plan(const std::string& yaml, int num_threads) {
  PLIMSOLL_ASSIGN(const settings::RunConfig config, settings::parse_run_config(yaml, "the proposed run"));
  const auto target = strategy::make_target(config, num_threads);
  PLIMSOLL_ASSIGN(strategy::Prepared prepared,
                  strategy::prepare(config, *target, {.num_threads = num_threads}));
  add_remedies(config, *target, {.num_threads = num_threads}, prepared);
  return prepared;
}

/// "path=value" of the command line in place of what is proposed, or beside it.
void take_overrides(const std::vector<std::string>& overrides, RunDraft& draft) {
  for (const std::string& text : overrides) {
    const size_t equals = text.find('=');
    const std::string path = text.substr(0, equals);
    if (path == "training.max_steps" || path == "max_steps") draft.remove("training.num_epochs");
    const std::string value = text.substr(equals + 1);
    if (path.find('.') == std::string::npos) draft.remove(path);  // a whole section
    draft.change(path, value.empty() ? "null" : value, "from the command line");
  }
}

bool names_lora(const std::vector<std::string>& overrides) {
  return std::ranges::any_of(overrides, [](const std::string& text) {
    return text.starts_with("lora.") || (text.starts_with("lora=") && text != "lora=null");
  });
}

/// All weights of a large model take what few machines have; who says nothing may not know of the other way.
void note_adapters(const RunRequest& request, const planner::PlanReport& report) {
  const bool is_large = report.num_parameters >= 1'000'000'000;
  if (!is_large && report.disk_bytes == 0) return;
  note(fmt::format(
      "all {} parameters are trained{}; LoRA adapters need far less memory: plimsoll init --model {} --data "
      "{} --lora",
      grouped(report.num_parameters),
      report.disk_bytes > 0 ? fmt::format(", with {} on disk", to_string(Bytes(report.disk_bytes))) : "",
      request.model, request.data.front()));
}

}  // namespace

Result<RunProposal> propose_run(const RunRequest& request) {
  RunDraft draft;
  add_model(draft, request);
  RunDraft first = draft;
  first.add("data.train", list(request.data), "");
  if (!request.tokenizer.empty()) first.add("data.tokenizer", text_of(request.tokenizer), "");
  PLIMSOLL_ASSIGN(const settings::RunConfig config,
                  settings::parse_run_config(first.yaml(), "given on the command line", request.overrides));
  PLIMSOLL_ASSIGN(const io::ConfigJson model_config, settings::load_model_config(config.model));
  PLIMSOLL_ASSIGN(const auto stored, models::read_quantization_config(model_config));
  const bool adapts = stored || request.lora_rank || names_lora(request.overrides);
  if (adapts)
    add_lora(draft, request.lora_rank.value_or(kUsualRank),
             stored
                 ? fmt::format("adapters; the frozen weights are {}", models::quantized_name(stored->dtype))
                 : "rank of the trained adapters; the model's weights are frozen");
  if (models::is_image_model(model_config))
    PLIMSOLL_TRY(draft_images(draft, config, model_config, list(request.data)));
  else
    PLIMSOLL_TRY(draft_texts(draft, request, config, model_config, adapts));
  add_precision(draft, config, adapts && !stored, *strategy::make_target(config, request.num_threads));
  draft.add("training.logging_steps", "20", "report every N steps");
  if (!settings::is_for_card(config))
    draft.add("memory.budget", "auto", "the memory that is free now, less a reserve; or 8GiB, 80%");
  RunProposal proposal;
  proposal.output_dir = request.output_dir.empty()
                            ? "runs/" + stem(request.model, false) + "-" + stem(request.data.front(), true)
                            : request.output_dir;
  draft.add("output.dir", text_of(proposal.output_dir),
            adapts ? "checkpoints, and final/: a PEFT adapter"
                   : "checkpoints, and final/: a Hugging Face directory");
  draft.add("output.save_steps", "200", "");
  draft.add("output.save_total_limit", "2", "");
  take_overrides(request.overrides, draft);
  PLIMSOLL_ASSIGN(strategy::Prepared prepared, plan(draft.yaml(), request.num_threads));
  if (!prepared.report.fits && !prepared.report.remedies.empty()) {
    for (const auto& [path, value] : prepared.report.remedies.front().settings)
      draft.change(path, value, "added so that the run fits: " + prepared.report.remedies.front().note);
    PLIMSOLL_ASSIGN(prepared, plan(draft.yaml(), request.num_threads));
  }
  if (!prepared.report.fits) return strategy::does_not_fit(prepared);
  if (!adapts) note_adapters(request, prepared.report);
  proposal.report = std::move(prepared.report);
  proposal.yaml = header(proposal, config) + draft.yaml();
  return proposal;
}

}  // namespace plimsoll::analysis
