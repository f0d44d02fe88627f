// The one list of settings; those of `training` stand in training_settings.cpp. A line names the field of
// RunConfig (its path is the setting's path), whether it says what is trained or how, one line of help and
// what it may be.
#include "settings/settings.h"

#include <algorithm>

#include "io/label_fields.h"
#include "settings/declare.h"

namespace plimsoll::settings {
namespace {

/// The file itself, and what is trained for.
void add_task(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(choice(PLIMSOLL_CHOICE(paths), kHow, "where paths of this file that begin with ./ or ../ start from"));
  add(plain(PLIMSOLL_FIELD(task), kWhat, "what is trained for; auto: what the model's architecture is for",
            {"auto", "causal_lm", "sequence_classification"}));
}

void add_classification(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(number(PLIMSOLL_FIELD(classification.num_labels), kWhat,
             "labels of a sequence; auto: the model's, else those of the data", 1,
             static_cast<double>(io::kMaxLabels), "auto"));
  add(plain(PLIMSOLL_FIELD(classification.problem_type), kWhat,
            "one label a sequence, several, or numbers; auto: as the model or the data's labels say",
            {"auto", "single_label", "multi_label", "regression", "single_label_classification",
             "multi_label_classification"}));
  add(plain(PLIMSOLL_FIELD(classification.label_names), kWhat,
            "the labels' names by id; empty: the model's, else those of the data, sorted"));
  only_with(list, {"classification."}, {"task", {"auto", "sequence_classification"}});
}

void add_model_and_data(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(model.path), kContent,
            "a Hugging Face model directory, its config.json, or a hub id in the local cache"));
  add(plain(PLIMSOLL_FIELD(model.preset), kContent,
            "instead of path: a public family by name, such as llama-2-7b or gpt2"));
  add(plain(PLIMSOLL_FIELD(model.config), kContent, "instead of path: the fields of a config.json"));
  add(plain(PLIMSOLL_FIELD(model.overrides), kContent,
            "fields put over the model's config, such as {num_hidden_layers: 4}"));
  add(choice(PLIMSOLL_CHOICE(model.init), kWhat,
             "first weights; auto: pretrained with a path, random otherwise"));
  add(plain(PLIMSOLL_FIELD(data.train), kContent,
            "training data: .jsonl, .csv, .parquet, .txt, .npy, .bin, shards; a file, a glob, a list"));
  add(plain(PLIMSOLL_FIELD(data.eval), kHow,
            "held-out data, as data.train; sets by name, one loss each: {news: a.jsonl, code: b.txt}"));
  add(above(PLIMSOLL_FIELD(data.weights), kWhat,
            "a mixture: one weight an entry of data.train, such as [3, 1]; none: entries are joined", 0,
            1e12));
  add(number(PLIMSOLL_FIELD(data.eval_fraction), kWhat,
             "in place of data.eval: share of data.train's documents held out, by their hash", 0, 0.9));
  add(number(PLIMSOLL_FIELD(data.sequence_length), kWhat, "tokens a sequence", 2, kMaxTokens));
  add(plain(PLIMSOLL_FIELD(data.shuffle), kWhat, "draw the sequences of an epoch in a random order"));
  add(plain(PLIMSOLL_FIELD(data.packing), kWhat,
            "best_fit: documents side by side, kept apart; pad: one a sequence; stream: joined",
            {"auto", "best_fit", "pad", "stream"}));
  add(number(PLIMSOLL_FIELD(data.buckets), kWhat,
             "lengths to pad to, a program each; a number: chosen from the data's lengths", 2, kMaxTokens));
  add(plain(PLIMSOLL_FIELD(data.long_documents), kWhat,
            "documents longer than a sequence: cut up, left out, or (TRL) their start kept",
            {"cut", "drop", "truncate"}));
  add(number(PLIMSOLL_FIELD(data.packing_window), kWhat, "documents that are packed together", 1, 0x1p24));
  add(plain(PLIMSOLL_FIELD(data.tokenizer), kContent,
            "auto: the model directory's, else bytes (random weights); bytes; or a path"));
  add(plain(PLIMSOLL_FIELD(data.chat_template), kContent, "a template file in place of the model's own"));
  add(plain(PLIMSOLL_FIELD(data.template_date), kWhat,
            "day that chat templates write (strftime_now), 2026-11-27; auto: the run's first"));
  add(plain(PLIMSOLL_FIELD(data.loss), kWhat,
            "which tokens are targets; auto: assistant's turns, completions; trl: whole conversations",
            {"auto", "all", "completions", "assistant", "all_assistant", "trl"}));
  add(plain(PLIMSOLL_FIELD(data.text_key), kWhat,
            "JSON lines: the member that holds the text; empty: by the members that a line has"));
  add(plain(PLIMSOLL_FIELD(data.append_eos), kWhat,
            "end-of-text token: auto behind completions, trl behind JSON texts too, true always",
            {"auto", "true", "false", "trl"}));
  add(plain(PLIMSOLL_FIELD(data.add_special_tokens), kWhat,
            "what the tokenizer puts around texts and prompts (<s> and the like); TRL: true"));
  add(plain(PLIMSOLL_FIELD(data.on_error), kWhat,
            "examples that cannot be read: stop, or pass over and count", {"fail", "skip"}));
  add(plain(PLIMSOLL_FIELD(data.cache_dir), kHow,
            "folder of tokenized data and packing; null: data in output.dir"));
  add(number(PLIMSOLL_FIELD(data.num_workers), kHow,
             "threads that read ahead; auto: one, more where a step waits; 0: each step reads its own", 0, 64,
             "auto"));
  add(number(PLIMSOLL_FIELD(data.prefetch_factor), kHow, "steps whose data is read ahead", 1, 64));
  add(plain(PLIMSOLL_FIELD(data.keep_in_memory), kHow,
            "what is trained on stays in memory, files of so many bytes in all: 256MiB; null: none"));
  add(number(PLIMSOLL_FIELD(data.max_train_samples), kWhat,
             "the first so many documents (of tokens: sequences) of each source", 1, kMaxCount));
  add(number(PLIMSOLL_FIELD(data.max_eval_samples), kHow, "the same of what is evaluated", 1, kMaxCount));
  only_with(list, {"data.buckets"}, {"data.packing", {"pad"}});
  only_with(list, {"data.packing_window"},
            {.path = "data.packing", .values = {"auto", "best_fit"}, .is_noted = true});
}

void add_memory_and_quantization(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(memory.budget), kHow,
            "most memory of the process (CPU) or the device: auto, 6GiB, 80%"));
  add(plain(PLIMSOLL_FIELD(memory.device_budget), kHow, "bound of the device's pool alone"));
  add(plain(PLIMSOLL_FIELD(memory.host_budget), kHow, "bound of the host's pool alone"));
  add(plain(PLIMSOLL_FIELD(memory.recompute), kHow, "what is computed again in backward instead of kept",
            {"auto", "none", "full", "attention", "mlp", "selective", "segments"}));
  add(choice(PLIMSOLL_CHOICE(memory.optimizer_in_backward), kHow,
             "update each parameter where its gradient is complete; auto: where it takes that to fit"));
  add(plain(PLIMSOLL_FIELD(memory.second_backward), kHow,
            "where clipping keeps the optimizer out of backward: run backward twice"));
  add(plain(PLIMSOLL_FIELD(memory.offload), kHow,
            "what lies elsewhere than on the device: {optimizer: disk, parameters: {host: 12}}",
            {"auto", "none"}));
  add(choice(PLIMSOLL_CHOICE(memory.update_on_host), kHow,
             "the host updates what has its states there; auto: where that is quicker"));
  add(plain(PLIMSOLL_FIELD(memory.offload_dir), kHow,
            "folder of what is offloaded to disk, in a file without a name; empty: output.dir"));
  add(plain(PLIMSOLL_FIELD(memory.disk_budget), kHow, "bound of what is offloaded to disk: auto, 20GiB"));
  add_lora_settings(list);
  add(plain(PLIMSOLL_FIELD(quantization.load_in_4bit), kWhat, "keep the frozen weights in 4 bits"));
  add(plain(PLIMSOLL_FIELD(quantization.bnb_4bit_quant_type), kWhat, "code of the 4 bits", {"nf4", "fp4"}));
  add(plain(PLIMSOLL_FIELD(quantization.bnb_4bit_use_double_quant), kWhat,
            "quantise the block scales as well"));
  add(plain(PLIMSOLL_FIELD(quantization.load_in_8bit), kWhat,
            "keep them in 8 bits, a scale for each row (LLM.int8's, without its outlier columns)"));
  add(plain(PLIMSOLL_FIELD(quantization.bnb_4bit_compute_dtype), kWhat,
            "what products round to; auto: training.precision, which it must agree with",
            {"auto", "float32", "bfloat16", "float16"}));
  add(plain(PLIMSOLL_FIELD(quantization.llm_int8_skip_modules), kWhat,
            "linear layers that stay as they are, by name"));
  only_with(list, {"memory.second_backward"},
            {.path = "memory.optimizer_in_backward", .values = {"true"}, .is_noted = true});
}

void add_machine_and_output(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(runtime.device), kHow,
            "cpu; cuda: an NVIDIA card (cuda:1 the second); discrete: a simulated one, for tests"));
  add(plain(PLIMSOLL_FIELD(runtime.discrete.memory), kHow,
            "what the device has; auto: as much as the process is given"));
  add(plain(PLIMSOLL_FIELD(runtime.discrete.copy_bandwidth), kHow,
            "of copies, in each direction; null: memory speed"));
  add(number(PLIMSOLL_FIELD(runtime.discrete.seed), kHow,
             "of what delays, splits and starves the queues; null: nothing does", 0, 0x1p53));
  add(plain(PLIMSOLL_FIELD(runtime.discrete.check), kHow, "device memory faults when the host touches it"));
  add(plain(PLIMSOLL_FIELD(runtime.profile), kHow,
            "auto: this machine; built-in: nothing measured; a card, such as h100; a profile's file"));
  add(number(PLIMSOLL_FIELD(runtime.threads), kHow, "CPU threads", 1, 4096, "auto"));
  add(plain(PLIMSOLL_FIELD(output.dir), kHow, "folder of checkpoints and the final model"));
  add(plain(PLIMSOLL_FIELD(output.save_strategy), kHow, "steps: without save_steps every 500",
            {"auto", "no", "steps", "epoch"}));
  add(number(PLIMSOLL_FIELD(output.save_steps), kHow,
             "checkpoint every so many steps; 0: only where a signal stops the run", 0, kMaxCount));
  add(number(PLIMSOLL_FIELD(output.save_total_limit), kHow,
             "checkpoints to keep; the disk must hold one more", 1, 1e6));
  add(plain(PLIMSOLL_FIELD(output.data_cache_limit), kHow,
            "tokenized data and packing to keep in data.cache_dir, the least recently used are removed"));
  add(plain(PLIMSOLL_FIELD(output.dtype), kHow,
            "what final/ is stored in; auto: as the model came, random weights as they are kept",
            {"auto", "bf16", "fp16", "fp32"}));
  add(plain(PLIMSOLL_FIELD(output.max_shard_size), kHow,
            "the final model in files of at most this, with an index; null: one file"));
  add(number(PLIMSOLL_FIELD(output.monitor_seconds), kHow,
             "the machine beside the run in events.jsonl every so many seconds; 0: not", 0, kMaxCount));
  add(plain(PLIMSOLL_FIELD(debug.dump_dir), kHow, "write step-%06d.safetensors of every step here"));
  add(plain(PLIMSOLL_FIELD(debug.dump), kHow, "what a dump holds",
            {"loss", "gradients", "logits", "parameters"}));
  add(plain(PLIMSOLL_FIELD(debug.poison), kHow, "fill freed memory with signalling NaNs"));
  add(choice(PLIMSOLL_CHOICE(debug.plan), kHow, "arena: packed; separate: one buffer each"));
  add(number(PLIMSOLL_FIELD(debug.verify_steps), kHow,
             "every so many steps each op runs twice and its results are compared bit by bit; 0: never", 0,
             kMaxCount));
  takes_only(list, "runtime.device",
             {"cpu", "discrete", "cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6",
              "cuda:7"});
  only_with(list, {"runtime.discrete."},
            {.path = "runtime.device", .values = {"discrete"}, .is_noted = true});
  only_with(list, {"debug.dump"}, {.path = "debug.dump_dir", .is_noted = true});
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> list = [] {
    std::vector<Setting> all;
    add_task(all);
    add_model_and_data(all);
    add_classification(all);
    add_training_settings(all);
    add_memory_and_quantization(all);
    add_machine_and_output(all);
    paths(all,
          {"model.path", "data.train", "data.eval", "data.tokenizer", "data.chat_template", "data.cache_dir",
           "lora.adapter", "memory.offload_dir", "training.logging_dir", "output.dir", "debug.dump_dir"});
    return all;
  }();
  return list;
}

const Setting* find_setting(std::string_view path) {
  const auto& all = settings();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Setting& s) { return s.path == path; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace plimsoll::settings
