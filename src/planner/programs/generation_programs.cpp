#include "planner/programs/generation_programs.h"

#include "ops/op_list.h"
#include "ops/ops.h"
#include "ops/rounding.h"
#include "planner/programs/finish_program.h"

namespace plimsoll::planner {
namespace {

using ir::Builder;
using ir::DType;
using ir::Graph;
using ir::StateClass;
using ir::ValueId;
using passes::ProgramRole;

class GenerationBuilder {
 public:
  GenerationBuilder(const models::LanguageModel& model, const GenerationOptions& options,
                    const runtime::Target& target)
      : model_(model), options_(options), target_(target) {}

  Result<GenerationPrograms> run() {
    std::vector<passes::Program> programs;
    if (options_.chunk_tokens > 0) {
      PLIMSOLL_ASSIGN(passes::Program prefill, build(ProgramRole::kPrefill));
      programs.push_back(std::move(prefill));
    }
    PLIMSOLL_ASSIGN(passes::Program decode, build(ProgramRole::kDecode));
    programs.push_back(std::move(decode));
    PLIMSOLL_ASSIGN(result_.session, finish_session(std::move(programs), target_));
    return std::move(result_);
  }

 private:
  Result<passes::Program> build(ProgramRole role) {
    const bool decodes = role == ProgramRole::kDecode;
    Graph graph;
    graph.name = passes::name(role);
    passes::Pipeline pipeline(pipeline_options(graph, decodes));
    Builder b(graph, ops::find_op);
    const auto input = [&](std::string_view state, ir::Shape shape) {
      return b.state({std::string(state), {DType::kI32, shape}, StateClass::kInput});
    };
    const int64_t rows = options_.batch_size;
    const models::Forward forward{
        .tokens = decodes ? input(kNextState, {rows, 1}) : input(kChunkState, {rows, options_.chunk_tokens}),
        .start = input(kStartState, {rows}),
        .cache_tokens = options_.cache_tokens,
        .cache_dtype = ops::stored_dtype(options_.pipeline.precision)};
    const ValueId hidden = model_.hidden(b, forward);
    if (decodes) {
      const ValueId logits = model_.head(b, hidden);
      graph.declare_state({std::string(kNextLogitsState), b.type(logits), StateClass::kOutput});
      b.assign(kNextLogitsState, logits);
    }
    PLIMSOLL_TRY(b.status());
    PLIMSOLL_TRY(pipeline.forward(graph, {}));
    return finish(role, std::move(graph), pipeline);
  }

  [[nodiscard]] passes::PipelineOptions pipeline_options(const Graph& graph, bool decodes) const {
    passes::PipelineOptions options = options_.pipeline;
    options.grad = false;
    // The product of few rows has bits of its own, so that of the many does not stand in for it: a row's
    // logits must not depend on how many others there are.
    options.small_m = decodes ? options_.batch_size : 0;
    return program_options(std::move(options), graph, target_);
  }

  Result<passes::Program> finish(ProgramRole role, Graph graph, passes::Pipeline& pipeline) {
    PLIMSOLL_ASSIGN(passes::Program program,
                    finish_program({role}, std::move(graph), pipeline, options_.memory, target_));
    add_cost(program);
    return program;
  }

  void add_cost(const passes::Program& program) {
    const Graph& graph = program.graph;
    for (const ir::OpId id : graph.order()) {
      const ir::Cost cost = ir::op_cost(graph, graph.op(id));
      if (program.id.role == ProgramRole::kDecode) {
        result_.decode_flops += cost.flops;
        result_.decode_bytes += cost.bytes;
      } else {
        result_.prefill_flops += cost.flops;
      }
    }
  }

  const models::LanguageModel& model_;
  const GenerationOptions& options_;
  const runtime::Target& target_;
  GenerationPrograms result_;
};

}  // namespace

Result<GenerationPrograms> build_generation_programs(const models::LanguageModel& model,
                                                     const GenerationOptions& options,
                                                     const runtime::Target& target) {
  return GenerationBuilder(model, options, target).run();
}

}  // namespace plimsoll::planner
