// A run as its user asked for it: the run file and the command line's overrides, checked. The fields'
// defaults here are the settings' defaults; names, ranges, help and everything printed come from the list in
// settings.cpp.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "io/model_config.h"
#include "io/tree.h"
#include "models/lora.h"
#include "optimizers/hyper.h"
#include "settings/choice.h"
#include "settings/data_settings.h"

namespace plimsoll::settings {

/// memory.budget and its kin: the planner's choice, bytes, or a share of the machine's memory.
struct MemoryBudget {
  enum class Kind { kAuto, kBytes, kShare };
  Kind kind = Kind::kAuto;
  int64_t bytes = 0;   ///< kBytes
  double share = 0.0;  ///< kShare, above 0 to 1
};

/// Bytes a second; nothing: no bound.
struct Bandwidth {
  double bytes_per_second = 0;
};

/// Seconds that a message takes beside its bytes.
struct Latency {
  double seconds = 0;
};

struct ModelSettings {
  std::string path = {};    ///< a model directory, its config.json, or a hub id in the local cache
  std::string preset = {};  ///< a public family by name
  io::Tree config = {};     ///< fields of a config.json written in the run file; null where not given
  io::Tree overrides = {};  ///< fields put over any of the three; null where not given
  OneOf<FirstWeights> init = FirstWeights::kAuto;  ///< auto: pretrained with a path, else random
  OneOf<NormStatisticsWord> norm_statistics = NormStatisticsWord::kAuto;  ///< of BatchNorm layers
};

/// training.precision_overrides: pattern and precision, in the order in which they are tried.
using PrecisionOverrides = std::vector<std::pair<std::string, Precision>>;

/// training.fp8, with Transformer Engine's names and defaults.
struct Fp8Settings {
  std::string recipe = "delayed";
  int64_t margin = 0;
  std::string fp8_format = "hybrid";
  int64_t amax_history_len = 1024;
  std::string amax_compute_algo = "max";
  double keep_last_layers = 0;                   ///< share of the blocks that stay in bf16
  std::optional<bool> stochastic_rounding = {};  ///< auto: on
  std::optional<bool> hadamard = {};
  bool quantized_activations = false;  ///< backward reads inputs of norms and activations from FP8 copies
};

struct LossScaleSettings {
  std::optional<double> fixed = {};  ///< a static scale
  double init_scale = 65536;
  double growth_factor = 2;
  double backoff_factor = 0.5;
  int64_t growth_interval = 2000;
  double min_scale = 1;  ///< below it the run has diverged

  [[nodiscard]] double first() const { return fixed.value_or(init_scale); }
};

/// Where the training state lives; what the words resolve to is in state_settings.h.
struct StateSettings {
  OneOf<StateWord> weights = StateWord::kFp32;
  std::optional<bool> master_weights = {};  ///< nothing: auto
  OneOf<StateWord> gradients = StateWord::kFp32;
  OneOf<StateWord> accumulators = StateWord::kFp32;
  OneOf<MomentsWord> moments = MomentsWord::kFp32;
  OneOf<UpdateRounding> rounding = UpdateRounding::kAuto;
};

struct SchedulerSettings {
  std::optional<double> num_cycles = {};
  double power = 1.0;
  double lr_end = 1e-7;
  double min_lr_ratio = 0.0;
  std::optional<int64_t> num_decay_steps = {};
  OneOf<Ramp> decay_type = Ramp::kCosine;
  OneOf<Ramp> warmup_type = Ramp::kLinear;
  std::optional<int64_t> step_size = {};
  double gamma = 0.1;
  double pct_start = 0.3;
  double div_factor = 25.0;
  double final_div_factor = 1e4;
};

/// One entry of training.param_groups: what it leaves out is the run's.
struct ParamGroup {
  std::vector<std::string> params = {};  ///< patterns of parameters' names; of several groups the first
  std::optional<double> learning_rate = {};
  std::optional<double> weight_decay = {};
  std::optional<std::array<double, 2>> betas = {};
};
using ParamGroups = std::vector<ParamGroup>;

struct TrainingSettings {
  int64_t global_batch_size = 32;
  bool chooses_global_batch_size = false;        ///< it says auto, and is 1 until it is chosen. Not a setting
  std::optional<int64_t> micro_batch_size = {};  ///< nothing: auto
  std::optional<int64_t> gradient_accumulation_steps = {};  ///< nothing: auto
  std::optional<int64_t> max_steps = {};
  std::optional<double> num_epochs = {};  ///< neither this nor max_steps: one epoch
  OneOf<Precision> precision = Precision::kFp32;
  PrecisionOverrides precision_overrides = {};
  bool residual_in_fp32 = true;  ///< false: the residual stream is stored in a precision of 16 bits
  Fp8Settings fp8 = {};
  LossScaleSettings loss_scale = {};
  StateSettings state = {};
  std::string optimizer = "adamw";  ///< adam: as adamw without decay; sgd: as torch.optim.SGD
  double learning_rate = 3e-4;
  std::string lr_scheduler = "cosine";
  SchedulerSettings lr_scheduler_kwargs = {};
  int64_t warmup_steps = 0;
  std::optional<double> warmup_ratio = {};
  double adam_beta1 = 0.9;
  double adam_beta2 = 0.999;  ///< lion: 0.99 unless given
  double adam_epsilon = 1e-8;
  double momentum = 0;  ///< sgd; 0: no buffer
  double dampening = 0;
  bool nesterov = false;
  optimizers::AdafactorHyper adafactor = {};
  optimizers::MuonHyper muon = {};
  double weight_decay = 0.01;  ///< sgd, adafactor: 0 unless given
  OneOf<DecayScope> weight_decay_scope = DecayScope::kMatrices;
  ParamGroups param_groups = {};
  std::vector<std::string> freeze = {};       ///< patterns of parameters' names
  std::vector<std::string> unfreeze = {};     ///< over freeze
  std::optional<double> ema_decay = {};       ///< nothing: no averages of the weights
  std::optional<double> max_grad_norm = 1.0;  ///< 0 or nothing: no clipping; see clip_norm()
  int64_t seed = 42;
  double label_smoothing = 0;  ///< share of each target that is spread over all classes
  int64_t logging_steps = 1;
  bool logging_first_step = false;
  bool logging_nan_inf_filter = true;       ///< what is not finite is left out of the mean loss
  std::vector<std::string> report_to = {};  ///< tensorboard
  std::string logging_dir = {};             ///< empty: <output.dir>/runs
  std::string run_name = {};                ///< a folder below logging_dir; empty: none
  /// Whether report_to names it.
  [[nodiscard]] bool reports_to(std::string_view where) const {
    return std::find(report_to.begin(), report_to.end(), where) != report_to.end();
  }
  std::string eval_strategy = "auto";  ///< auto | no | steps; resolved into eval_steps when a run is read
  int64_t eval_steps = 0;              ///< 0: only after the last step
  bool load_best_model_at_end = false;
  std::string metric_for_best_model = {};      ///< empty: the loss
  std::optional<bool> greater_is_better = {};  ///< nothing: as the metric is
  std::optional<int64_t> early_stopping_patience = {};
  double early_stopping_threshold = 0;
};

struct RecomputeSettings {
  OneOf<RecomputeMode> mode = RecomputeMode::kAuto;
  int64_t count = 0;  ///< every: n, segments: k; 0: as many segments as the root of the blocks
  std::vector<std::string> layers = {};
};

struct MemorySettings {
  MemoryBudget budget = {};
  MemoryBudget device_budget = {};
  MemoryBudget host_budget = {};
  RecomputeSettings recompute = {};
  OneOf<OptimizerInBackward> optimizer_in_backward = OptimizerInBackward::kAuto;
  bool second_backward = false;
  io::Tree offload =
      io::Tree::of(std::string("auto"));  ///< the word auto or none, or a map from class to place
  OneOf<UpdateOnHost> update_on_host = UpdateOnHost::kAuto;
  std::string offload_dir = {};   ///< of what lies on the disk; empty: output.dir
  MemoryBudget disk_budget = {};  ///< of that; auto: no bound
};

struct LoftqSettings {
  std::optional<int64_t> loftq_bits = {};  ///< nothing: quantization's
  int64_t loftq_iter = 1;
};

struct LoraSettings {
  bool enabled = false;  ///< the section stands in the run file and is not null
  std::string adapter = {};
  // Nothing: PEFT's default, or the adapter's own; see settings/lora_settings.h.
  std::optional<int64_t> r = {};
  std::optional<double> lora_alpha = {};
  std::optional<double> lora_dropout = {};
  models::ModuleNames target_modules = {};
  models::ModuleNames exclude_modules = {};
  std::vector<std::string> layers_to_transform = {};
  std::vector<std::string> layers_pattern = {};
  std::optional<bool> use_rslora = {};
  std::string bias = "auto";  ///< auto | none | all | lora_only
  std::vector<std::string> modules_to_save = {};
  io::Tree rank_pattern = {};
  io::Tree alpha_pattern = {};
  std::string init_lora_weights = "true";  ///< true | false | gaussian | pissa… | olora | loftq
  LoftqSettings loftq_config = {};
  std::optional<bool> use_dora = {};
  std::optional<bool> lora_bias = {};
  std::vector<std::string> trainable_token_indices = {};
};

struct QuantizationSettings {
  bool enabled = false;
  bool load_in_4bit = false;
  bool load_in_8bit = false;
  std::string bnb_4bit_quant_type = "nf4";
  bool bnb_4bit_use_double_quant = false;
  std::string bnb_4bit_compute_dtype = "auto";  ///< auto: training.precision's
  std::vector<std::string> llm_int8_skip_modules = {};

  /// Whether weights are quantised at all.
  [[nodiscard]] bool quantizes() const { return enabled && (load_in_4bit || load_in_8bit); }
};

/// The device that runtime.device: discrete makes.
struct DiscreteSettings {
  MemoryBudget memory = {};  ///< auto: as much as the process is given
  Bandwidth copy_bandwidth = {};
  std::optional<int64_t> seed = {};
  bool check = false;
};

struct RuntimeSettings {
  std::string device = "cpu";  ///< cpu | discrete
  DiscreteSettings discrete = {};
  std::string profile = "auto";
  std::optional<int64_t> threads = {};  ///< nothing: auto, the CPUs that the process may use
};

/// The network between ranks, for estimates. Rates are those of one rank, in each direction.
struct TopologySettings {
  std::optional<int64_t> per_node = {};  ///< ranks of one machine; nothing: all
  Bandwidth intra = {};                  ///< within a machine; no bound: as fast as its memory
  Bandwidth inter = {};                  ///< between machines
  Latency latency = {5e-6};

  [[nodiscard]] bool is_given() const { return intra.bytes_per_second > 0 || inter.bytes_per_second > 0; }
};

/// Data parallel training by several processes, the ranks.
struct DistributedSettings {
  OneOf<RankMode> mode = RankMode::kAuto;
  std::string transport = "auto";     ///< auto | shm | mpi | nccl
  std::string launcher = "auto";      ///< auto: ranks as the environment says | none
  std::optional<int64_t> ranks = {};  ///< nothing: the launcher's; planning takes it as it is
  std::optional<int64_t> rank = {};   ///< of this process; nothing: the launcher's
  std::string address = {};           ///< where rank 0 listens, HOST:PORT; empty: the launcher's
  std::string library = {};           ///< of MPI, name or path; empty: the launcher's, where it is installed
  TopologySettings topology = {};

  /// How many ranks the run is planned for.
  [[nodiscard]] int64_t num_ranks() const { return ranks.value_or(1); }
};

struct OutputSettings {
  std::string dir = "runs/out";
  std::string save_strategy = "auto";  ///< auto | no | steps; resolved into save_steps when a run is read
  int64_t save_steps = 0;              ///< 0: only the final model
  std::optional<int64_t> save_total_limit = {};
  std::optional<Bytes> data_cache_limit = 100_GiB;  ///< nothing: it may grow
  std::string dtype = "auto";                       ///< of final/: auto | bf16 | fp16 | fp32
  double monitor_seconds = 5;  ///< between two events of the machine beside the run; 0: none
  std::optional<Bytes> max_shard_size = Bytes(5'000'000'000);  ///< of final/; nothing: one file
};

struct DebugSettings {
  std::string dump_dir = {};
  std::vector<std::string> dump = {"loss",
                                   "gradients"};  ///< loss | gradients | logits | parameters | buffers
  bool poison = false;
  OneOf<PlanLayout> plan = PlanLayout::kArena;
  int64_t verify_steps = 0;  ///< 0: never
};

/// What a run was read from, so that it can be read again with more overrides.
struct RunSource {
  std::string text = {}, name = {};
  std::vector<std::string> overrides = {};
};

/// The whole run.
struct RunConfig {
  OneOf<PathBase> paths =
      PathBase::kWorkingFolder;  ///< as read; paths have been resolved where it said run_file
  std::string task = "auto";     ///< auto, or a task's name
  ModelSettings model = {};
  ClassificationSettings classification = {};
  MaskingSettings mlm = {};
  AnswerSettings qa = {};
  DataSettings data = {};
  TrainingSettings training = {};
  MemorySettings memory = {};
  LoraSettings lora = {};
  QuantizationSettings quantization = {};
  RuntimeSettings runtime = {};
  DistributedSettings distributed = {};
  OutputSettings output = {};
  DebugSettings debug = {};
  /// A session of a library's caller: gradients can be read, an update whose gradients are not finite changes
  /// nothing, and the plan counts what the session takes and nothing of the process around it. Not a setting.
  bool is_embedded = false;
  /// Lines for the user: names that were accepted but do nothing here. Not a setting.
  std::vector<std::string> notes = {};
  /// Null where it was not read from a text. Not a setting.
  std::shared_ptr<const RunSource> source = {};

  /// Whether training evaluates: there is data for it, and eval_strategy does not say no.
  [[nodiscard]] bool evaluates_while_training() const {
    return data.evaluates() && training.eval_strategy != "no";
  }
  /// Whether a debug dump of this kind is asked for ("loss", "gradients", "logits", "parameters", "buffers").
  [[nodiscard]] bool dumps(std::string_view kind) const;
  /// Whether some products run in that precision ("bf16"), by training.precision or an override.
  [[nodiscard]] bool computes_in(Precision precision) const;
  /// Whether the loss is scaled: fp16 alone needs it.
  [[nodiscard]] bool scales_loss() const { return computes_in(Precision::kFp16); }
  /// Where the event files of report_to: tensorboard go.
  [[nodiscard]] std::string event_folder() const;
  /// The gradient norm at which to clip, nothing where clipping is off.
  [[nodiscard]] std::optional<double> clip_norm() const;
};

/// What a run is read for, and so what it has to say: training and evaluation need data.
enum class RunUse { kPlan, kTraining, kEvaluation };

/// Reads a run file, puts each override "dotted.path=yaml value" over it in order, and checks the whole.
/// Errors: kInvalidArgument for everything the user wrote or named wrongly and for what its use lacks, all
/// together (Error::more); what only follows from another of them is left out.
Result<RunConfig> load_run_config(const std::string& path, std::span<const std::string> overrides = {},
                                  RunUse use = RunUse::kPlan);
/// The same from the file's text; `source` stands in messages.
Result<RunConfig> parse_run_config(std::string_view text, const std::string& source,
                                   std::span<const std::string> overrides = {}, RunUse use = RunUse::kPlan);

/// The run with `more` overrides behind those that it was read with: what the command line would make of
/// them. One that was put together is first written as a run file. Errors: as parse_run_config.
Result<RunConfig> with_overrides(const RunConfig& config, std::span<const std::string> more);

/// Paths of the settings that one override gives. Errors: as parse_run_config.
Result<std::vector<std::string>> settings_of_override(const std::string& text);

/// The run.yaml of a checkpoint, of an older version too: settings without effect are passed over. Errors: as
/// parse_run_config.
Result<RunConfig> parse_recorded_run(std::string_view text, const std::string& source);

/// What training needs beyond a plan: data, and weights where pretrained ones are asked for. Errors:
/// kInvalidArgument.
Status check_for_training(const RunConfig& config);
/// What evaluation needs: data.eval, and weights as above. Errors: kInvalidArgument.
Status check_for_evaluation(const RunConfig& config);

/// The model's config.json: from the path, the local hub cache, the preset or the run file, with
/// model.overrides. Errors: kBadData (files), kInvalidArgument (no model named, an unknown preset), kIo.
Result<io::ConfigJson> load_model_config(const ModelSettings& model);

/// The folder that model.path names, or that the local hub cache holds for it; empty for a preset or a config
/// in the run file. Errors: kBadData where there is none.
Result<std::string> model_directory(const ModelSettings& model);

/// Whether the first weights come from the model's folder: model.init, where auto means "if there is a path".
bool starts_pretrained(const ModelSettings& model);

/// Refuses fields of model.overrides and model.config that the model's family does not know; `config` is the
/// one that its reader has read. Errors: kInvalidArgument naming the nearest field.
Status check_overrides(const ModelSettings& model, const io::ConfigJson& config);

/// What holds between a run and its model: the sequences within its positions. Errors: kInvalidArgument.
Status check_against_model(const RunConfig& config, int64_t max_position_embeddings);

/// Micro-batch and accumulation steps with their product global_batch_size. What is auto is derived from the
/// other; where both are, nothing: the planner's choice among the divisors.
struct BatchSplit {
  int64_t micro_batch_size = 1;
  int64_t grad_accum_steps = 1;
  bool operator==(const BatchSplit&) const = default;
};
std::optional<BatchSplit> fixed_batch_split(const TrainingSettings& training);
/// The settings of one of `ranks` by themselves: its share of the effective batch, the same for all. Where
/// the batch does not divide, the last ranks' shares end with padding.
TrainingSettings training_of_rank(const TrainingSettings& training, int64_t ranks);

/// Optimizer steps of the run: max_steps, or the epochs' worth. Positive.
int64_t total_steps(const TrainingSettings& training, int64_t num_sequences);

}  // namespace plimsoll::settings
