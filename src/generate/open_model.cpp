#include "generate/open_model.h"

#include <utility>

#include "base/host.h"
#include "io/adapter_folder.h"
#include "io/file.h"
#include "models/lora.h"
#include "models/lora_config.h"
#include "models/quantization_config.h"
#include "models/quantize.h"
#include "models/selection.h"
#include "settings/quantization.h"
#include "tokenizers/tokenizer_source.h"

namespace plimsoll::generate {
namespace {

/// generation_config.json; none is an empty one.
Result<io::ConfigJson> generation_config(const std::string& folder) {
  const std::string path = folder + "/generation_config.json";
  PLIMSOLL_ASSIGN(const bool is_there, io::path_exists(path));
  if (!is_there) return io::ConfigJson(io::Tree::map(), path);
  return io::read_config_json(path);
}

/// What the model's files have in few bits, or the request wants so.
Result<std::optional<models::QuantizeSpec>> few_bits(const io::ConfigJson& config, const Request& request) {
  settings::RunConfig run;
  run.model.path = request.model;
  run.quantization = request.quantization;
  if (request.dtype == "bf16") run.training.precision = settings::Precision::kBf16;
  PLIMSOLL_TRY(settings::check_quantization(run));
  PLIMSOLL_ASSIGN(std::optional<models::QuantizeSpec> spec, models::read_quantization_config(config));
  if (spec) {
    PLIMSOLL_ASSIGN(spec, settings::settle_stored(run, std::move(*spec), /*trains=*/false));
  } else {
    spec = settings::quantize_spec(run.quantization);
    if (spec) spec->learns = false;
  }
  return spec;
}

Result<std::unique_ptr<models::LanguageModel>> language_model(const io::ConfigJson& base,
                                                              const Request& request) {
  io::ConfigJson config(base.fields(), base.source());
  models::LoraSpec lora;
  if (!request.adapter.empty()) {
    PLIMSOLL_ASSIGN(lora, models::read_adapter_config(request.adapter));
    lora.lora_dropout = 0;  // generation does not train
    models::fit_vocabulary(lora, config);
  }
  PLIMSOLL_ASSIGN(auto model, models::make_language_model(config));
  if (model->num_labels() > 0)
    return Error{ErrorCode::kBadData, "the model is a classifier, expected a causal language model",
                 config.source(), "it answers with labels: plimsoll predict --model DIR --data FILE"};
  PLIMSOLL_TRY(models::check_is_causal(*model, config));
  if (!request.adapter.empty()) {
    PLIMSOLL_ASSIGN(const std::string type, config.model_type());
    if (auto added = models::add_adapters(*model, lora, type, /*strict=*/false); !added)
      return io::of_adapter(std::move(added).error(), request.adapter);
  }
  if (request.dtype == "bf16") model->keep_in(ir::DType::kBf16);
  PLIMSOLL_ASSIGN(const auto spec, few_bits(config, request));
  if (!spec) {
    PLIMSOLL_TRY(models::check_whole(*model));
    return model;
  }
  if (model->adapters()) PLIMSOLL_TRY(models::select(*model, {}));  // what the adapter has whole
  PLIMSOLL_TRY(models::quantize(*model, *spec));
  return model;
}

/// A special token that is a stop text ends an answer as an id, since it has no text; so does in a chat what
/// the template writes behind an answer, whether or not the model's files name it.
Status add_stops(const Request& request, OpenModel& opened) {
  const TextCodec& codec = opened.codec;
  if (!request.stops.empty() && !codec.has_text())
    return Error{ErrorCode::kInvalidArgument, "--stop is a text, and the model has none", opened.folder,
                 "its files lack tokenizer.json"};
  for (const std::string& stop : request.stops)
    if (const auto id = codec.special_token(stop)) opened.resolved.eos_ids.push_back(*id);
  if (!request.chat || request.ignore_eos) return Ok{};
  std::vector<int32_t> behind;
  const std::string text = opened.format.behind_answer();
  if (!text.empty()) PLIMSOLL_TRY(codec.encode_rendered(text, behind));
  if (!behind.empty() && codec.is_special(behind.front())) opened.resolved.eos_ids.push_back(behind.front());
  return Ok{};
}

}  // namespace

Result<OpenModel> open_model(const Request& given) {
  PLIMSOLL_ASSIGN(io::NamedModel named, io::find_named_model(given.model, given.adapter));
  if (named.note) note(*named.note);
  Request request = given;
  request.model = named.model;
  request.adapter = named.adapter;
  std::string folder = std::move(named.model);
  PLIMSOLL_ASSIGN(const io::ConfigJson config, io::read_config_json(folder + "/config.json"));
  PLIMSOLL_ASSIGN(auto model, language_model(config, request));
  // An adapter that was named as the model brings the tokenizer and the template that it was trained with.
  const bool has_texts = given.adapter.empty() && !request.adapter.empty() &&
                         !tokenizers::tokenizer_file(request.adapter).empty();
  const std::string& texts = has_texts ? request.adapter : folder;
  PLIMSOLL_ASSIGN(const io::ConfigJson generation, generation_config(texts));
  PLIMSOLL_ASSIGN(Resolved resolved, resolve(request, generation, config, model->vocab_size()));
  for (const std::string& text : resolved.notes) note(text);
  PLIMSOLL_ASSIGN(TextCodec codec, TextCodec::open(texts, model->vocab_size()));
  PLIMSOLL_ASSIGN(ChatFormat format, ChatFormat::open(texts, request));
  const bool has_prompts =
      !request.prompts.empty() || !request.text_files.empty() || !request.prompt_files.empty();
  if (has_prompts && format.applies() && !request.chat)
    note("chat template applied to each prompt; --raw turns it off");
  PLIMSOLL_ASSIGN(io::ModelWeights weights, io::ModelWeights::open(folder));
  OpenModel opened{std::move(folder), request.adapter,   std::move(model),  std::move(resolved),
                   std::move(codec),  std::move(format), std::move(weights)};
  PLIMSOLL_TRY(add_stops(request, opened));
  return opened;
}

}  // namespace plimsoll::generate
