// plimsoll generate: text from a model.
#include <csignal>
#include <cstdio>
#include <memory>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/signals.h"
#include "generate/run.h"

namespace plimsoll::cli {
namespace {

constexpr const char* kGenerateFooter =
    R"(defaults: options that are not given come from the model's generation_config.json (do_sample, temperature, top_k,
top_p, min_p, repetition_penalty, max_new_tokens, eos_token_id); a model without one is greedy. --top-k, --top-p
and --min-p sample at temperature 1 unless --temperature says otherwise; --temperature 0 is greedy. The same seed
gives a prompt the same text in any batch and with any number of threads.
chat: if the model's folder has a chat template, a prompt becomes a user message in it, unless --raw is given. The
folder of a run means its final/. --stop texts are not printed.

examples:
  plimsoll generate --model runs/one/final --prompt "Once upon a time"
  plimsoll generate --model HuggingFaceTB/SmolLM-135M --prompt "The sea" --temperature 0.8 --top-p 0.95
  plimsoll generate --model runs/one --chat --system "Answer in one sentence."
  plimsoll generate --model DIR --adapter runs/lora/final --prompt "The sea"
  plimsoll generate --model DIR --load-in-4bit --prompt "The sea"
  plimsoll generate --model DIR --messages chats.jsonl --json > answers.jsonl
  git diff | plimsoll generate --model DIR --system "Write a commit message." --prompt - --stop $'\n\n'
  plimsoll generate --model DIR --prompts prompts.txt --batch-size 8 --json > out.jsonl
exit codes: 0 done, 2 usage, 65 model or prompt files, 69 does not fit, 74 I/O; a signal ends
the process after the text so far was printed)";

void add_prompt_options(Parser c, generate::Request& r) {
  c.add_option("--model", r.model, "a model directory, or a Hub id that is already cached")
      .required()
      .type_name("DIR|ID");
  c.add_option("--adapter", r.adapter, "LoRA adapter of the model (a PEFT directory)").type_name("DIR");
  c.add_option("--prompt", r.prompts, "a prompt, or - for standard input; may be given several times")
      .type_name("TEXT|-")
      .repeatable();
  c.add_option("--prompt-file", r.text_files, "a file as one prompt; may be given several times")
      .type_name("FILE")
      .repeatable();
  c.add_option("--prompts", r.prompt_files, "a file of prompts: .txt with one per line, .jsonl as --messages")
      .type_name("FILE");
  c.add_option("--messages", r.messages_files,
               "JSON lines with \"messages\", a \"prompt\" or \"ids\", or - for standard input")
      .type_name("FILE|-");
  c.add_option("--prompt-ids", r.prompt_ids, "a prompt as token ids, 1,2,3; may be given several times")
      .type_name("IDS")
      .repeatable();
}

void add_chat_options(Parser c, generate::Request& r) {
  c.add_flag("--chat", r.chat, "hold a conversation; turns come from the terminal or standard input");
  c.add_option("--system", r.system, "system message of conversations without one").type_name("TEXT");
  c.add_flag("--raw", r.raw, "use prompts unchanged, without the model's chat template");
  c.add_flag("--no-chat", r.raw, "the same as --raw");
  c.add_option("--chat-template", r.chat_template, "chat template instead of the model's").type_name("FILE");
  c.add_option("--context", r.context,
               "maximum tokens of a chat (default: the model's positions, at most 4096)")
      .type_name("N");
  c.add_option("--stop", r.stops, "stop at this text; may be given several times")
      .type_name("TEXT")
      .repeatable();
}

void add_sampling_options(Parser c, generate::Request& r) {
  c.add_option("--max-new-tokens", r.max_new_tokens, "stop after N tokens (128; chats: 512)").type_name("N");
  c.add_option("--temperature", r.temperature, "0: greedy; else logits are divided by it").type_name("T");
  c.add_option("--top-k", r.top_k, "sample from the K most likely tokens; 0: from all").type_name("K");
  c.add_option("--top-p", r.top_p, "sample from the smallest set of tokens whose probabilities reach P")
      .type_name("P");
  c.add_option("--min-p", r.min_p, "sample from tokens at least P times as likely as the most likely one")
      .type_name("P");
  c.add_option("--repetition-penalty", r.repetition_penalty, "values above 1 make earlier tokens less likely")
      .type_name("X");
  c.add_option("--seed", r.seed, "sampling seed (42)").type_name("N");
  c.add_flag("--ignore-eos", r.ignore_eos, "continue after an end-of-sequence token");
}

/// transformers' names.
void add_quantization_options(Parser c, settings::QuantizationSettings& q) {
  c.add_flag("--load-in-4bit", q.load_in_4bit, "keep the linear layers in 4 bits, quantized while loading");
  c.add_flag("--load-in-8bit", q.load_in_8bit, "keep the linear layers in 8 bits with a scale per row");
  c.add_option("--bnb-4bit-quant-type", q.bnb_4bit_quant_type, "4-bit format (nf4)").one_of({"nf4", "fp4"});
  c.add_flag("--bnb-4bit-use-double-quant", q.bnb_4bit_use_double_quant,
             "quantize the scales to 8 bits, too");
  c.add_option("--llm-int8-skip-modules", q.llm_int8_skip_modules,
               "linear layer that is not quantized; may be given several times")
      .type_name("NAME")
      .repeatable();
}

void add_run_options(Parser c, generate::Request& r, bool& json) {
  c.add_option("--dtype", r.dtype, "dtype of weights, cache and products; bf16 takes half the memory (fp32)")
      .one_of({"fp32", "bf16"});
  add_quantization_options(c, r.quantization);
  c.add_option("--batch-size", r.batch_size, "prompts per batch (up to 8)").type_name("B");
  c.add_option("--threads", r.threads, "threads (default: all available CPUs)").type_name("N");
  c.add_option("--memory-budget", r.memory_budget, "memory budget of the process: auto, 6GiB, 80%")
      .type_name("SIZE");
  c.add_option("--dump-ir", r.dump_ir, "write the text of each program after each pass to this folder")
      .type_name("DIR");
  c.add_flag("--timings", r.timings, "print the seconds of the last prefill and decode by op on stderr");
  c.add_flag("--json", json, "print one JSON object per line on stdout and nothing else");
  c.add_flag("--no-stream", r.stream, "print each text when it is complete", /*value=*/false);
}

/// As the shell expects of a program that a signal has stopped.
void end_as(int signal) {
  std::fflush(stdout);
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

Command add_generate(Parser app) {
  Parser command = app.add_subcommand("generate", "generate text from a model, greedy or sampled");
  auto request = std::make_shared<generate::Request>();
  add_prompt_options(command, *request);
  add_chat_options(command, *request);
  add_sampling_options(command, *request);
  auto json = std::make_shared<bool>(false);
  add_run_options(command, *request, *json);
  command.footer(kGenerateFooter);
  return [request, json](const Environment& environment) -> Status {
    settings::QuantizationSettings& quantization = request->quantization;
    quantization.enabled = quantization.load_in_4bit || quantization.load_in_8bit;
    if (!quantization.enabled &&
        (quantization.bnb_4bit_use_double_quant || !quantization.llm_int8_skip_modules.empty()))
      return Error{
          ErrorCode::kInvalidArgument,
          "--bnb-4bit-use-double-quant and --llm-int8-skip-modules have no effect without quantization",
          {},
          "add --load-in-4bit or --load-in-8bit"};
    request->process_start_seconds = environment.process_start_seconds;
    request->stop = stop_reason;
    request->forget_interrupt = [] {
      if (stop_requested() == SIGINT) forget_stop_request();
    };
    {
      const StopSignals signals(/*outlive_readers=*/false);
      Console console(*json);
      PLIMSOLL_TRY(generate::run(*request, console));
    }
    if (const int signal = stop_requested(); signal != 0) end_as(signal);
    return Ok{};
  };
}

}  // namespace plimsoll::cli
