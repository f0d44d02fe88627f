// Runs drawn from the table of settings: a few settings each, with values that their declarations take and
// what they go by (Setting::only_with) set so that they have an effect. A setting that is new joins by
// itself; one whose value is a map needs its samples in samples_of().
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "io/tree.h"
#include "io/yaml.h"
#include "settings/run_config.h"
#include "settings/settings.h"

namespace plimsoll::settings {

/// Settings by path, each with its value as YAML.
using Drawn = std::map<std::string, std::string>;

/// What a setting takes beside it, where that is more than Setting::only_with says.
inline const std::map<std::string, Drawn>& companions() {
  static const Drawn evaluations = {
      {"data.eval", "held.txt"}, {"training.eval_steps", "5"}, {"output.save_steps", "10"}};
  static const std::map<std::string, Drawn> all = {
      {"training.nesterov",
       {{"training.optimizer", "sgd"}, {"training.momentum", "0.9"}, {"training.dampening", "0"}}},
      {"distributed.rank", {{"distributed.ranks", "65536"}}},
      {"training.state.gradients", {{"training.precision", "bf16"}}},
      {"lora.layers_pattern", {{"lora.layers_to_transform", "[0, 1]"}}},
      {"training.adafactor.warmup_init",
       {{"training.optimizer", "adafactor"}, {"training.adafactor.relative_step", "true"}}},
      {"training.load_best_model_at_end", evaluations},
      {"training.early_stopping_patience", evaluations},
      {"training.early_stopping_threshold", evaluations}};
  return all;
}

/// Values of settings that take maps, or lists of a kind of their own.
inline const std::map<std::string, std::vector<std::string>>& samples_of() {
  static const std::map<std::string, std::vector<std::string>> samples = {
      {"model.config", {"{model_type: gpt2, n_layer: 2, n_embd: 8}", "null"}},
      {"model.overrides",
       {"{num_hidden_layers: 2}", "{hidden_act: silu, \"a.b\": [1, null, \"x: y\"]}", "null"}},
      {"memory.offload",
       {"auto", "none", "{optimizer: disk}", "{optimizer: host, parameters: {host: 3}}", "{}"}},
      {"data.images.mean", {"[]", "[0.5, 0.5, 0.5]", "[0.485, 0.456, 0.406]"}},
      {"data.images.std", {"[]", "[0.5, 0.5, 0.5]", "[0.229, 0.224, 0.225]"}},
      {"lora.rank_pattern", {"null", "{q_proj: 4}", "{\"^model.layers.0.*q_proj\": 2, v_proj: 3}", "{}"}},
      {"data.template_date", {"auto", "2026-11-27", "1999-12-31"}},
      {"lora.layers_to_transform", {"[]", "[0, 1]", "2"}},
      {"lora.trainable_token_indices", {"[]", "[3, 5]"}},
      {"lora.alpha_pattern", {"null", "{q_proj: 1.5}", "{\"layers.1.mlp.down_proj\": 2}"}}};
  return samples;
}

class RandomRuns {
 public:
  explicit RandomRuns(uint64_t seed) : random_(seed) {}

  /// A few settings, their values perhaps in conflict.
  Drawn draw() {
    Drawn drawn;
    std::vector<const Setting*> all;
    for (const Setting& setting : settings())
      if (setting.field != nullptr) all.push_back(&setting);
    for (int64_t left = 1 + below(12); left > 0; --left)
      add(*all[static_cast<size_t>(below(static_cast<int64_t>(all.size())))], drawn);
    if (!drawn.contains("model.path") && !drawn.contains("model.config") && below(3) > 0)
      drawn["model.preset"] = "smollm-135m";
    if (below(2) == 0) drawn.emplace("data.train", "[a.txt, 'b c.jsonl']");
    if (below(3) == 0) drawn.emplace("data.eval", "held.txt");
    return drawn;
  }

  /// The drawn settings as a run file, without those that errors name until it is read; nothing where none is
  /// left.
  std::optional<std::string> valid(Drawn drawn) {
    while (!drawn.empty()) {
      const std::string text = run_file(drawn);
      const auto run = parse_run_config(text, "run.yaml");
      if (run) return text;
      leave_out_one(run.error(), drawn);
    }
    return std::nullopt;
  }

  static std::string run_file(const Drawn& drawn) {
    io::Tree document = io::Tree::map();
    for (const auto& [path, text] : drawn) {
      io::Tree* at = &document;
      size_t begin = 0;
      for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', begin)) {
        const std::string section = path.substr(begin, dot - begin);
        if (at->find(section) == nullptr) at->set(section, io::Tree::map());
        at = const_cast<io::Tree*>(at->find(section));
        begin = dot + 1;
      }
      const auto value = io::parse_yaml(text);
      EXPECT_TRUE(value) << path << ": " << text;
      if (value) at->set(path.substr(begin), *value);
    }
    return io::to_yaml_flow(document);
  }

  /// A value that the setting's declaration takes, as YAML.
  std::string value_of(const Setting& setting) {
    if (const auto samples = samples_of().find(setting.path); samples != samples_of().end())
      return one_of(samples->second);
    if (!setting.available.empty()) return one_of(setting.available);
    RunConfig run;
    return std::visit([&](auto* field) { return value(setting, field); }, setting.field(run));
  }

 private:
  int64_t below(int64_t n) { return std::uniform_int_distribution<int64_t>(0, n - 1)(random_); }
  const std::string& one_of(const std::vector<std::string>& words) {
    return words[static_cast<size_t>(below(static_cast<int64_t>(words.size())))];
  }

  void add(const Setting& setting, Drawn& drawn) {
    drawn[setting.path] = value_of(setting);
    if (const auto beside = companions().find(setting.path); beside != companions().end())
      for (const auto& [path, value] : beside->second) drawn[path] = value;
    const OnlyWith& needs = setting.only_with;
    if (needs.path.empty()) return;
    const Setting& other = *find_setting(needs.path);
    add(other, drawn);
    if (!needs.values.empty()) drawn[needs.path] = one_of(needs.values);
  }

  void leave_out_one(const Error& error, Drawn& drawn) {
    std::vector<std::string> named;
    std::string said = error.what + " " + error.hint + " " + error.where;
    for (const Error& more : error.more) said += " " + more.what + " " + more.hint;
    for (const auto& [path, text] : drawn)
      if (said.find(path) != std::string::npos) named.push_back(path);
    for (const auto& [path, text] : drawn)
      if (named.empty() && said.find(path.substr(path.rfind('.') + 1)) != std::string::npos)
        named.push_back(path);
    if (named.empty()) named.push_back(drawn.begin()->first);
    drawn.erase(one_of(named));
  }

  // A value for each kind of field.
  std::string value(const Setting&, bool*) { return below(2) == 0 ? "true" : "false"; }
  std::string value(const Setting& setting, int64_t*) {
    if (setting.absent == "auto" && below(4) == 0) return "auto";
    return std::to_string(integer(setting));
  }
  std::string value(const Setting& setting, double*) { return io::number_text(number(setting)); }
  std::string value(const Setting& setting, Bytes*) {
    (void)setting;
    return one_of({"1", "7KiB", "256MiB", "5GB", "1000000", "3TiB"});
  }
  std::string value(const Setting& setting, std::string*) { return text(setting); }
  std::string value(const Setting& setting, Choice*) { return quoted(one_of(setting.choices)); }
  template <typename T>
  std::string value(const Setting& setting, std::optional<T>*) {
    return below(4) == 0 ? setting.absent : value(setting, static_cast<T*>(nullptr));
  }
  std::string value(const Setting& setting, std::vector<std::string>*) {
    std::string list;
    for (int64_t n = below(4); n > 0; --n) list += (list.empty() ? "" : ", ") + text(setting);
    return "[" + list + "]";
  }
  std::string value(const Setting& setting, std::vector<double>*) {
    std::string list;
    for (int64_t n = below(4); n > 0; --n)
      list += (list.empty() ? "" : ", ") + io::number_text(number(setting));
    return "[" + list + "]";
  }
  std::string value(const Setting& setting, std::array<double, 2>*) {
    return fmt::format("[{}, {}]", io::number_text(number(setting)), io::number_text(number(setting)));
  }
  std::string value(const Setting&, EvalFiles*) {
    return one_of({"held.txt", "[a.npy, \"b: c.txt\"]", "{news: [a.npy, b.npy], code: c.npy}", "null"});
  }
  std::string value(const Setting& setting, PrecisionOverrides*) {
    return below(3) == 0 ? "null" : "{\"*.mlp.*\": " + one_of(setting.choices) + ", lm_head: fp32}";
  }
  std::string value(const Setting&, ParamGroups*) {
    return one_of(
        {"null", "[{params: [\"*.bias\"], learning_rate: 1e-3}]",
         "[{params: \"*norm*\", weight_decay: 0}, {params: [\"#a\", \"*: b\"], betas: [0.5, 0.75]}]"});
  }
  std::string value(const Setting&, BucketSettings*) { return one_of({"null", "3", "[32, 64]", "[17]"}); }
  std::string value(const Setting&, AugmentSettings*) {
    return one_of({"null", "flip", "[random_resized_crop, {flip: {p: 0.25}}]"});
  }
  std::string value(const Setting&, MemoryBudget*) {
    return one_of({"auto", "6GiB", "80%", "100%", "123456789", "1.5GB", "null"});
  }
  std::string value(const Setting&, Latency*) { return one_of({"5us", "0s", "2.5us", "300ns", "1ms"}); }
  std::string value(const Setting&, Bandwidth*) { return one_of({"null", "12GB/s", "3000", "1.5GiB/s"}); }
  std::string value(const Setting& setting, RecomputeSettings*) {
    return one_of(
        {one_of(setting.choices), "{every: 3}", "{segments: 2}", "{layers: [layers.3, \"*.mlp\"]}"});
  }
  std::string value(const Setting&, models::ModuleNames*) {
    return one_of({"null", "[q_proj, v_proj]", "all-linear", "\".*\\\\.(q|k)_proj$\"", "[\"a: b\"]"});
  }
  std::string value(const Setting& setting, io::Tree*) {
    ADD_FAILURE() << setting.path << " takes a map: give samples of it in tests/settings/random_runs.h";
    return "null";
  }

  static std::string quoted(const std::string& word) {
    return word == "true" || word == "false" ? word : io::to_yaml_flow(io::Tree::of(word));
  }
  std::string text(const Setting& setting) {
    if (!setting.choices.empty()) return quoted(one_of(setting.choices));
    static const std::vector<std::string> words = {
        "a",        "runs/x",     "./y z", "../up/z", "/abs/p.json", "null",  "true",   "1e3",
        "0x10",     "no",         "*.txt", "a: b #c", "'\"\\",       "- x",   "{a}",    "[b, c]",
        "\xc3\xbc", "~",          "%x",    "a\tb",    "1_000",       " lead", "trail ", "a\nb",
        "12:30:45", "2024-01-01", "=",     "<<",      "!tag",        "&a"};
    return io::to_yaml_flow(io::Tree::of(one_of(words)));
  }
  int64_t integer(const Setting& setting) {
    const auto least = static_cast<int64_t>(setting.least) + (setting.above_least ? 1 : 0),
               most = static_cast<int64_t>(setting.most);
    switch (below(5)) {
      case 0:
        return least;
      case 1:
        return most;
      case 2:
        return std::min(most, std::max(least, int64_t{1} << below(12)));
      default:
        return std::min(most, least + below(9));
    }
  }
  double number(const Setting& setting) {
    const double least = setting.least, most = setting.most;
    const auto inside = [&](double x) { return x <= most && (setting.above_least ? x > least : x >= least); };
    for (int tries = 0; tries < 20; ++tries) {
      const double share = std::uniform_real_distribution<double>(0, 1)(random_);
      const double x = below(6) == 0   ? least
                       : below(6) == 0 ? most
                       : below(2) == 0 ? least + share * std::min(1.0, most - least)
                                       : std::pow(10.0, -12.0 + 14.0 * share);
      if (inside(x)) return x;
    }
    return most;
  }

  std::mt19937_64 random_;
};

}  // namespace plimsoll::settings
