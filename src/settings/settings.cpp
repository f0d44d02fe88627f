// The one list of settings; those of `training` stand in training_settings.cpp. A line names the field of
// RunConfig (its path is the setting's path), whether it says what is trained or how, one line of help and
// what it may be.
#include "settings/settings.h"

#include <algorithm>

#include "io/label_fields.h"
#include "settings/declare.h"
#include "tasks/task_list.h"

namespace plimsoll::settings {
namespace {

/// The file itself, and what is trained for.
void add_task(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(choice(PLIMSOLL_CHOICE(paths), kHow, "base for relative paths of this file that begin with ./ or ../"));
  Words tasks = {"auto"};
  for (const std::string_view name : tasks::task_names()) tasks.emplace_back(name);
  add(plain(PLIMSOLL_FIELD(task), kWhat, "what to train; auto: by the model's architecture",
            std::move(tasks)));
}

void add_classification(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(number(PLIMSOLL_FIELD(classification.num_labels), kWhat,
             "number of labels; auto: the model's, else the data's", 1, static_cast<double>(io::kMaxLabels),
             "auto"));
  add(plain(PLIMSOLL_FIELD(classification.problem_type), kWhat,
            "one label per sequence, several, or numbers; auto: from the model or the data",
            {"auto", "single_label", "multi_label", "regression", "single_label_classification",
             "multi_label_classification"}));
  add(plain(PLIMSOLL_FIELD(classification.label_names), kWhat,
            "names of the labels by id; empty: the model's, else the data's, sorted"));
}

void add_masking(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(number(PLIMSOLL_FIELD(mlm.probability), kWhat, "share of the tokens that are masked and predicted",
             0.001, 0.9));
  add(number(PLIMSOLL_FIELD(mlm.mask), kWhat, "share of the masked tokens that become the mask token", 0, 1));
  add(number(PLIMSOLL_FIELD(mlm.random), kWhat,
             "share that becomes a token at random; what is left of both stays as it is", 0, 1));
  add(plain(PLIMSOLL_FIELD(mlm.whole_word), kWhat, "mask all tokens of a word together"));
  add(number(PLIMSOLL_FIELD(mlm.mask_token), kWhat, "id of the mask token; auto: the tokenizer's", 0,
             static_cast<double>(int64_t{1} << 24), "auto"));
}

void add_answers(std::vector<Setting>& list) {
  list.push_back(number(PLIMSOLL_FIELD(qa.doc_stride), kWhat,
                        "tokens that neighbouring windows of a long context share", 0, kMaxTokens));
}

/// Settings that not every task reads go by the task, unless they go by another setting.
void needs_of_tasks(std::vector<Setting>& list) {
  for (Setting& setting : list) {
    const std::vector<std::string_view> readers = tasks::readers_of(setting.path);
    if (readers.empty() || !setting.only_with.path.empty()) continue;
    Words words = {"auto"};
    words.insert(words.end(), readers.begin(), readers.end());
    setting.only_with = {.path = "task", .values = std::move(words)};
  }
}

void add_model_and_data(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(model.path), kContent,
            "a Hugging Face model directory, its config.json, or a Hub id that is already cached"));
  add(plain(PLIMSOLL_FIELD(model.preset), kContent,
            "instead of path: a public family by name, such as llama-2-7b or gpt2"));
  add(plain(PLIMSOLL_FIELD(model.config), kContent, "instead of path: the fields of a config.json"));
  add(plain(PLIMSOLL_FIELD(model.overrides), kContent,
            "fields that replace those of the model's config, such as {num_hidden_layers: 4}"));
  add(choice(PLIMSOLL_CHOICE(model.init), kWhat,
             "initial weights; auto: pretrained with a path, random otherwise"));
  add(choice(PLIMSOLL_CHOICE(model.norm_statistics), kWhat,
             "BatchNorm: statistics of the batch, of all ranks' (synchronised), or running (frozen)"));
  add(plain(PLIMSOLL_FIELD(data.train), kContent,
            "training data: .jsonl, .csv, .parquet, .txt, .npy, .bin, shards; folders of images"));
  add(plain(PLIMSOLL_FIELD(data.eval), kHow,
            "held-out data, as data.train; named sets with one loss each: {news: a.jsonl, code: b.txt}"));
  add(above(PLIMSOLL_FIELD(data.weights), kWhat,
            "a mixture: one weight per entry of data.train, such as [3, 1]; none: entries are joined", 0,
            1e12));
  add(number(PLIMSOLL_FIELD(data.eval_fraction), kWhat,
             "instead of data.eval: share of data.train's documents that is held out, by hash", 0, 0.9));
  add(number(PLIMSOLL_FIELD(data.sequence_length), kWhat, "tokens per sequence", 2, kMaxTokens));
  add(plain(PLIMSOLL_FIELD(data.shuffle), kWhat, "shuffle the sequences of each epoch"));
  add(plain(PLIMSOLL_FIELD(data.packing), kWhat,
            "best_fit: documents share a sequence, without attention across; pad: one; stream: joined",
            {"auto", "best_fit", "pad", "stream"}));
  add(number(PLIMSOLL_FIELD(data.buckets), kWhat,
             "lengths to pad to; a number: so many, chosen from the data's lengths", 2, kMaxTokens));
  add(plain(PLIMSOLL_FIELD(data.long_documents), kWhat,
            "documents longer than a sequence: cut into pieces, dropped, or truncated as in TRL",
            {"cut", "drop", "truncate"}));
  add(number(PLIMSOLL_FIELD(data.packing_window), kWhat, "documents that one packing search considers", 1,
             0x1p24));
  add(plain(PLIMSOLL_FIELD(data.tokenizer), kContent,
            "auto: the model directory's, else bytes (random weights); bytes; or a path"));
  add(plain(PLIMSOLL_FIELD(data.chat_template), kContent, "a template file in place of the model's own"));
  add(plain(PLIMSOLL_FIELD(data.template_date), kWhat,
            "date for chat templates (strftime_now), e.g. 2026-11-27; auto: the first start's day"));
  add(plain(PLIMSOLL_FIELD(data.loss), kWhat,
            "tokens that count in the loss; auto: assistant turns, completions; trl: as TRL counts",
            {"auto", "all", "completions", "assistant", "all_assistant", "trl"}));
  add(plain(PLIMSOLL_FIELD(data.text_key), kWhat,
            "JSON lines: the member with the text; empty: by the members of a line"));
  add(plain(PLIMSOLL_FIELD(data.append_eos), kWhat,
            "end-of-text token: auto after completions, trl after JSON texts too, true always",
            {"auto", "true", "false", "trl"}));
  add(number(PLIMSOLL_FIELD(data.add_special_tokens), kWhat,
             "add the tokenizer's special tokens (<s>, [CLS]) to texts; auto: for masked_lm; TRL: true", 0, 1,
             "auto"));
  add(plain(PLIMSOLL_FIELD(data.on_error), kWhat, "unreadable examples: stop, or skip and count them",
            {"fail", "skip"}));
  add(plain(PLIMSOLL_FIELD(data.cache_dir), kHow,
            "folder of tokenized and packed data; null: data in output.dir"));
  add(number(PLIMSOLL_FIELD(data.num_workers), kHow,
             "loader threads; auto: one, more if steps wait; 0: each step reads its own batch", 0, 64,
             "auto"));
  add(number(PLIMSOLL_FIELD(data.prefetch_factor), kHow, "steps whose data is read ahead", 1, 64));
  add(plain(PLIMSOLL_FIELD(data.keep_in_memory), kHow,
            "keep training files of this total size in memory, such as 256MiB; null: none"));
  add(number(PLIMSOLL_FIELD(data.max_train_samples), kWhat,
             "use only the first N documents (for token files: sequences) of each source", 1, kMaxCount));
  add(number(PLIMSOLL_FIELD(data.max_eval_samples), kHow, "the same for evaluation data", 1, kMaxCount));
  only_with(list, {"data.buckets"}, {"data.packing", {"pad"}});
  only_with(list, {"data.packing_window"},
            {.path = "data.packing", .values = {"auto", "best_fit"}, .is_noted = true});
}

void add_memory_and_quantization(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(memory.budget), kHow, "memory of the process: auto, 6GiB, 80%"));
  add(plain(PLIMSOLL_FIELD(memory.device_budget), kHow, "memory of the device"));
  add(plain(PLIMSOLL_FIELD(memory.host_budget), kHow, "memory of the host"));
  add(plain(PLIMSOLL_FIELD(memory.recompute), kHow,
            "activations to recompute in backward (activation checkpointing)",
            {"auto", "none", "full", "attention", "mlp", "selective", "segments"}));
  add(choice(PLIMSOLL_CHOICE(memory.optimizer_in_backward), kHow,
             "update parameters in backward; auto: if needed to fit, before recomputing"));
  add(plain(PLIMSOLL_FIELD(memory.second_backward), kHow,
            "with gradient clipping, run backward twice to update in backward"));
  add(plain(PLIMSOLL_FIELD(memory.offload), kHow,
            "state kept in host memory or on disk: {optimizer: disk, parameters: {host: 12}}",
            {"auto", "none"}));
  add(choice(PLIMSOLL_CHOICE(memory.update_on_host), kHow,
             "run updates on the host if the optimizer state is there; auto: if that is faster"));
  add(plain(PLIMSOLL_FIELD(memory.offload_dir), kHow,
            "folder of the unnamed file for offload to disk; empty: output.dir"));
  add(plain(PLIMSOLL_FIELD(memory.disk_budget), kHow, "disk space for offload: auto, 20GiB"));
  add_lora_settings(list);
  add(plain(PLIMSOLL_FIELD(quantization.load_in_4bit), kWhat, "keep the frozen weights in 4 bits"));
  add(plain(PLIMSOLL_FIELD(quantization.bnb_4bit_quant_type), kWhat, "4-bit format", {"nf4", "fp4"}));
  add(plain(PLIMSOLL_FIELD(quantization.bnb_4bit_use_double_quant), kWhat, "quantize the block scales, too"));
  add(plain(PLIMSOLL_FIELD(quantization.load_in_8bit), kWhat,
            "keep the frozen weights in 8 bits with a scale per row (LLM.int8 without outlier columns)"));
  add(plain(PLIMSOLL_FIELD(quantization.bnb_4bit_compute_dtype), kWhat,
            "precision of the products; must agree with training.precision",
            {"auto", "float32", "bfloat16", "float16"}));
  add(plain(PLIMSOLL_FIELD(quantization.llm_int8_skip_modules), kWhat,
            "linear layers that are not quantized, by name"));
  only_with(list, {"memory.second_backward"},
            {.path = "memory.optimizer_in_backward", .values = {"true"}, .is_noted = true});
}

void add_distributed(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(choice(PLIMSOLL_CHOICE(distributed.mode), kHow,
             "what ranks share: nothing (ddp), optimizer (zero1), gradients (zero2), weights (zero3)"));
  add(plain(PLIMSOLL_FIELD(distributed.transport), kHow,
            "how ranks exchange gradients; shm: on one machine; nccl: cards; auto: what is found",
            {"auto", "shm", "mpi", "nccl"}));
  add(plain(PLIMSOLL_FIELD(distributed.launcher), kHow,
            "auto: ranks from the environment of mpirun, srun, torchrun; none: one rank", {"auto", "none"}));
  add(number(PLIMSOLL_FIELD(distributed.ranks), kHow,
             "ranks that share the effective batch; auto: the launcher's, else one", 1, 65536, "auto"));
  add(number(PLIMSOLL_FIELD(distributed.rank), kHow, "rank of this process; auto: the launcher's", 0, 65535,
             "auto"));
  add(plain(PLIMSOLL_FIELD(distributed.address), kHow,
            "where rank 0 listens, as host:port; empty: the launcher's"));
  add(plain(PLIMSOLL_FIELD(distributed.library), kHow,
            "MPI's library by name or path; empty: an installed one of the launcher's MPI"));
  add(number(PLIMSOLL_FIELD(distributed.topology.per_node), kHow,
             "the network, for estimates: ranks of one machine; auto: all", 1, 65536, "auto"));
  add(plain(PLIMSOLL_FIELD(distributed.topology.intra), kHow,
            "bandwidth of a rank within a machine, each way; null: memory speed"));
  add(plain(PLIMSOLL_FIELD(distributed.topology.inter), kHow,
            "bandwidth of a rank to other machines, each way"));
  add(plain(PLIMSOLL_FIELD(distributed.topology.latency), kHow,
            "fixed time of each message, whatever its size"));
  add(planned("distributed.reduction", kHow,
              "ordered: gradients are added in the order of ranks; library: in the library's order",
              "leave it out: ordered", {"ordered"}));
}

void add_machine_and_output(std::vector<Setting>& list) {
  const auto add = [&](Setting setting) { list.push_back(std::move(setting)); };
  add(plain(PLIMSOLL_FIELD(runtime.device), kHow,
            "cpu; cuda: an NVIDIA card (cuda:1 the second); discrete: a simulated one, for tests"));
  add(plain(PLIMSOLL_FIELD(runtime.discrete.memory), kHow,
            "memory of the simulated device; auto: the budget of the process"));
  add(plain(PLIMSOLL_FIELD(runtime.discrete.copy_bandwidth), kHow,
            "bandwidth of copies in each direction; null: memory speed"));
  add(number(PLIMSOLL_FIELD(runtime.discrete.seed), kHow,
             "seed of random delays of queued work, for tests; null: none", 0, 0x1p53));
  add(plain(PLIMSOLL_FIELD(runtime.discrete.check), kHow,
            "make device memory fault if the host touches it, for tests"));
  add(plain(PLIMSOLL_FIELD(runtime.profile), kHow,
            "auto: this machine; built-in: nothing measured; a card, such as h100; a profile's file"));
  add(number(PLIMSOLL_FIELD(runtime.threads), kHow, "CPU threads", 1, 4096, "auto"));
  add(plain(PLIMSOLL_FIELD(output.dir), kHow, "folder of checkpoints and the final model"));
  add(plain(PLIMSOLL_FIELD(output.save_strategy), kHow, "steps: without save_steps every 500",
            {"auto", "no", "steps", "epoch"}));
  add(number(PLIMSOLL_FIELD(output.save_steps), kHow,
             "save a checkpoint every N steps; 0: only if a signal stops the run", 0, kMaxCount));
  add(number(PLIMSOLL_FIELD(output.save_total_limit), kHow,
             "checkpoints to keep; while one is being saved, the disk holds one more", 1, 1e6));
  add(plain(PLIMSOLL_FIELD(output.data_cache_limit), kHow,
            "size limit of data.cache_dir; the least recently used files are removed"));
  add(plain(PLIMSOLL_FIELD(output.dtype), kHow,
            "dtype of final/; auto: that of the model's files, for random weights that of the run",
            {"auto", "bf16", "fp16", "fp32"}));
  add(plain(PLIMSOLL_FIELD(output.max_shard_size), kHow,
            "size limit of the files of the final model; null: one file"));
  add(number(PLIMSOLL_FIELD(output.monitor_seconds), kHow,
             "sample the machine every N seconds into events.jsonl; 0: never", 0, kMaxCount));
  add(plain(PLIMSOLL_FIELD(debug.dump_dir), kHow, "write step-%06d.safetensors of every step here"));
  add(plain(PLIMSOLL_FIELD(debug.dump), kHow, "contents of a dump",
            {"loss", "gradients", "logits", "parameters", "buffers", "quantized", "operands"}));
  add(plain(PLIMSOLL_FIELD(debug.poison), kHow, "fill freed memory with signalling NaNs"));
  add(choice(PLIMSOLL_CHOICE(debug.plan), kHow, "arena: packed; separate: one buffer each"));
  add(number(PLIMSOLL_FIELD(debug.verify_steps), kHow,
             "every N steps run each op twice and compare the results bit by bit; 0: never", 0, kMaxCount));
  takes_only(list, "runtime.device",
             {"cpu", "discrete", "cuda", "cuda:0", "cuda:1", "cuda:2", "cuda:3", "cuda:4", "cuda:5", "cuda:6",
              "cuda:7"});
  only_with(list, {"runtime.discrete."},
            {.path = "runtime.device", .values = {"discrete"}, .is_noted = true});
  for (Setting& setting : list)
    setting.is_for_tests =
        setting.path == "runtime.discrete.seed" || setting.path == "runtime.discrete.check";
  only_with(list, {"debug.dump"}, {.path = "debug.dump_dir", .is_noted = true});
}

}  // namespace

const std::vector<Setting>& settings() {
  static const std::vector<Setting> list = [] {
    std::vector<Setting> all;
    add_task(all);
    add_model_and_data(all);
    add_image_settings(all);
    add_classification(all);
    add_masking(all);
    add_answers(all);
    add_training_settings(all);
    needs_of_tasks(all);
    add_memory_and_quantization(all);
    add_distributed(all);
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
