// plimsoll predict: a classifier's answers.
#include <memory>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/signals.h"
#include "engine/engine.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kPredictFooter =
    R"(a line of --data: {"text": …, "text_pair"?: …} or {"input_ids": […]}; labels in it are ignored
of an image classifier: a folder of images, an image, or a table {"image": path}
one line per example, in the same order; of images with "image": path in front:
  one label              {"label": "pos", "score": its probability, "logits": […]}
  several                {"label": [those above 0.5], "score": [all probabilities], "logits": […]}
  numbers                {"label": null, "score": the value, "logits": […]}

of a model that answers questions: lines {"question": …, "context": …, "id"?: …}, or SQuAD's files
one line per question; begin and end count characters of the context, and answers in the data are compared:
  {"id": …, "answer": …, "score": its probability, "begin": …, "end": …}

examples:
  plimsoll predict --model runs/one/final --data test.jsonl
  plimsoll predict --model DIR --data a.jsonl --data b.jsonl --output predictions.jsonl
  plimsoll predict --model runs/flowers/final --data photos/
  plimsoll predict --model runs/squad/final --data dev-v2.0.json --null-threshold 0
  plimsoll predict --model BASE --adapter runs/lora/final --data test.jsonl
exit codes: 0 done, 2 usage, 65 model or data, 69 does not fit, 74 I/O, 75 stopped by a signal)";

}  // namespace

Command add_predict(Parser app) {
  Parser c = app.add_subcommand("predict", "predict labels of sequences or images, or answers to questions");
  auto request = std::make_shared<engine::PredictRequest>();
  engine::PredictRequest& r = *request;
  c.add_option("--model", r.model, "the model's directory, or a Hub id that is already cached")
      .required()
      .type_name("DIR|ID");
  c.add_option("--adapter", r.adapter, "LoRA adapter of the model (a PEFT directory)").type_name("DIR");
  c.add_option("--data", r.data, "JSON lines, or images; a file, a folder or a glob, may be repeated")
      .required()
      .type_name("FILE|DIR")
      .repeatable();
  c.add_option("--output", r.output, "output file (default: stdout)").type_name("FILE");
  c.add_option("--text-key", r.text_key, "member that holds the text (text)").type_name("KEY");
  c.add_option("--max-length", r.max_length,
               "truncate longer rows (default: the model's positions; windows of questions: 384)")
      .range(1, int64_t{1} << 28);
  c.add_option("--doc-stride", r.doc_stride, "questions: tokens that neighbouring windows share (128)")
      .range(0, int64_t{1} << 28);
  c.add_option("--max-answer-length", r.answers.max_answer_tokens, "questions: tokens of an answer (30)")
      .range(1, int64_t{1} << 28);
  c.add_option("--n-best", r.answers.n_best, "questions: begins and ends that are combined (20)")
      .range(1, 1000);
  c.add_option(
      "--null-threshold", r.answers.null_threshold,
      "questions: no answer where its score exceeds the best by more than this (default: always one)");
  c.add_option("--alternatives", r.alternatives, "questions: write so many of the best answers (0)")
      .range(0, 1000);
  c.add_option("--batch-size", r.batch_size, "largest batch (16)").range(1, int64_t{1} << 16);
  c.add_option("--threads", r.threads, "threads (default: all available CPUs)").range(1, int64_t{1} << 12);
  c.add_option("--memory-budget", r.memory_budget, "memory budget of the process: auto, 6GiB, 80%")
      .type_name("SIZE");
  c.footer(kPredictFooter);
  return [request](const Environment&) -> Status {
    const StopSignals signals(/*outlive_readers=*/false);
    Console console(/*json=*/false);
    return engine::Engine(console, stop_reason).predict(*request);
  };
}

}  // namespace plimsoll::cli
