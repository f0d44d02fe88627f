/* The C interface of Plimsoll: all that libplimsoll.so.0 exports. The C++ headers and the Python package call
 * nothing else.
 *
 *   builder ── inputs, parameters, ops, loss ──► plan ──► session ── batch ──► step, evaluate, read, save
 *   run file ─────────────────────────────────► plan, train, evaluate, generate
 *
 * Conventions
 * - No struct and no C++ type crosses the interface. Handles are opaque; texts are UTF-8 and end with a zero;
 *   attributes, options and results that may get more fields are JSON; settings are those of the run file
 *   (docs/settings.md) as YAML or JSON. Functions are added and never removed or changed.
 * - A function that can fail returns an int: PLS_OK or a code, which is the program's exit code for the same
 *   error. On failure it sets `*error` to a handle with message and hint, which the caller frees with
 *   pls_error_free. `error` may be null. On success `*error` is not written.
 * - A text that a function returns belongs to the handle. It is valid until the handle is freed or, where the
 *   function says so, until the next call on that handle.
 * - A handle may be used from any thread, but from one at a time; calls on one session wait for each other.
 *   Different handles may be used at the same time.
 * - A forked child cannot use what was made before fork(): calls on a session of the parent return
 *   PLS_INTERNAL with "fork" in the message, and freeing it does nothing.
 * - The library prints nothing, installs no signal handler, never exits or aborts, and ignores the locale. It
 *   uses the working directory only for relative paths of the caller. A session in which an internal error
 *   happened answers every later call with that error.
 * - The "_free" functions accept null.
 */
#ifndef PLIMSOLL_PLIMSOLL_C_H
#define PLIMSOLL_PLIMSOLL_C_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define PLS_API __attribute__((visibility("default")))
#else
#define PLS_API
#endif

typedef struct pls_error pls_error;
typedef struct pls_builder pls_builder;
typedef struct pls_plan pls_plan;
typedef struct pls_batch pls_batch;
typedef struct pls_session pls_session;

/* A value of a builder: an input, a parameter, the result of an op. PLS_NONE stands for an omitted
 * operand. */
typedef int32_t pls_value;
#define PLS_NONE (-1)
/* The largest number of axes of a tensor. */
#define PLS_MAX_RANK 8

enum {
  PLS_OK = 0,
  PLS_INVALID_ARGUMENT = 2, /* a setting, a name, a shape, an attribute that the caller gave */
  PLS_BAD_DATA = 65,        /* data or files that are damaged or do not belong together */
  PLS_DOES_NOT_FIT = 69,    /* the plan exceeds the budget: the error's JSON has "least_bytes" */
  PLS_INTERNAL = 70,        /* a bug of the library; also use after fork() */
  PLS_IO = 74,              /* the operating system refused */
  PLS_INTERRUPTED = 75,     /* the callback asked to stop, after saving */
  PLS_DIVERGED = 76         /* loss or gradient is not finite; the session is as before the step */
};

/* ---- library */

/* The version, "0.1.0". */
PLS_API const char* pls_version(void);
/* The version of this interface, which rises when a function is added. */
PLS_API int pls_abi_version(void);
#define PLS_ABI_VERSION 1
/* JSON: [{"name", "summary", "operands": [names, "?" behind those that may be left out, "..." behind a list],
 * "attributes": {name: {"required", "default"}}}] of all that pls_op takes. */
PLS_API const char* pls_ops(void);
/* The order in which a run with that seed reads `size` examples in epoch `epoch`, a permutation of 0 …
 * size - 1: writes its entries [first, first + count). Memory does not depend on `size`. Works after fork. */
PLS_API int pls_order(int64_t seed, int64_t epoch, int64_t size, int64_t first, int64_t count,
                      int64_t* positions, pls_error** error);

/* ---- errors */

/* One of the codes above. */
PLS_API int pls_error_code(const pls_error* error);
/* What is wrong and where, one line or several. */
PLS_API const char* pls_error_message(const pls_error* error);
/* What to do about it; may be empty. */
PLS_API const char* pls_error_hint(const pls_error* error);
/* {"code", "kind": "invalid_argument" | "bad_data" | "does_not_fit" | "internal" | "io" | "interrupted" |
 * "diverged", "what", "where", "hint", "more": [errors found beside it]} and where they apply: "least_bytes"
 * (the least budget that fits, exactly), "budget_bytes". */
PLS_API const char* pls_error_json(const pls_error* error);
PLS_API void pls_error_free(pls_error* error);

/* ---- builder: a model as a graph
 * A front end runs the user's forward pass once; each call appends to the builder. Element types are
 * "float32", "int32", and of inputs also "int64" and "bool", which become int32. Nothing follows the loss. */

PLS_API int pls_builder_create(pls_builder** builder, pls_error** error);
PLS_API void pls_builder_free(pls_builder* builder);

/* A tensor of each batch. Names are unique. */
PLS_API int pls_input(pls_builder* builder, const char* name, const char* dtype, const int64_t* shape,
                      int rank, pls_value* value, pls_error** error);

/* A float32 parameter. The same name with the same shape and options is the same parameter (tied weights);
 * with another shape or other options it is an error. `options` is JSON and may be null:
 *   {"init": "zeros" (default) | "ones" | "constant" | "uniform" | "normal",
 *    "value": of "constant", "bound": "uniform" draws from [-bound, bound), "std": of "normal",
 *    "trained": true,             false: frozen, without gradient and optimizer state
 *    "kind": "linear" | "embedding" | "vector"   default: by rank, one axis is a vector; Muon and groups ask
 *                                                 for it
 *          | "filters"    a convolution's [out, in / groups, height, width]; stored with its channels last
 *          | "buffer"     no parameter: a running value of batch_norm, zeros, ones or constant. It is read,
 *                         written, saved and loaded by its name as parameters are
 *          | "count"}     a buffer of one number, an int64 in files: the batches that running values have
 *                         followed, "x.num_batches_tracked" beside "x.running_mean". `value` becomes PLS_NONE
 * A draw depends on the session's seed, the name and the element alone, not on the order of calls. */
PLS_API int pls_parameter(pls_builder* builder, const char* name, const int64_t* shape, int rank,
                          const char* options, pls_value* value, pls_error** error);

/* A tensor that never changes (a buffer in PyTorch, a mask). `data` is dense and is copied; `dtype` is
 * "float32" or "int32". */
PLS_API int pls_constant(pls_builder* builder, const char* name, const char* dtype, const int64_t* shape,
                         int rank, const void* data, pls_value* value, pls_error** error);

/* Appends the op `name`. `attributes` is JSON; null: none. `outputs` has room for `num_outputs` values, at
 * least as many as the op has results: one, but for split, which has one for each size. Shapes of
 * elementwise ops broadcast as in numpy. An error names the op, the operand and the scope.
 *
 *   linear(x, weight [out, in], bias?)
 *   embedding(weight [rows, dim], ids) {padding_idx?}
 *   rms_norm(x, weight) {eps}
 *   layer_norm(x, weight, bias) {eps}
 *   batch_norm(x [batch, channels, ...], weight?, bias?, running_mean?, running_var?)
 *     {eps = 1e-5, momentum = 0.1, training = true}: steps normalise by the batch, and the running values,
 *     which are buffers, follow it; evaluations use these, and steps too without `training`
 *   group_norm(x [batch, channels, ...], weight?, bias?) {groups, eps = 1e-5}
 *   conv2d(x [batch, in, height, width], weight [out, in / groups, height, width], bias?)
 *     {stride = 1, padding = 0, dilation = 1, groups = 1}: one number, or [height, width]
 *   max_pool2d(x) {kernel, stride?, padding = 0}
 *   avg_pool2d(x) {kernel, stride?, padding = 0, count_include_pad = true}
 *   adaptive_avg_pool2d(x) {size}
 *   dropout(x) {p}
 *   attention(q, k, v) {causal = false, scale?, dropout = 0, layout: "bthd" | "bhtd" = "bthd", window = 0}
 *   matmul(a, b) {transpose_a = false, transpose_b = false}: as torch.matmul, the leading axes broadcast
 *   softmax, log_softmax (x) {axis = -1}
 *   gelu(x) {approximate: "none" | "tanh" = "none"}
 *   silu, relu, tanh, sigmoid, neg, exp, log, sqrt, rsqrt, abs, sign, square, softplus, erf (x)
 *   add, sub, mul, div, pow, maximum, minimum (a, b?) {scalar?, reverse = false}: `scalar` stands in for b;
 *     reverse: b op a
 *   eq, ne, lt, le, gt, ge (a, b?) {scalar?, reverse = false}: 0 or 1 as float32
 *   where(condition, a, b)
 *   clamp(x) {min?, max?}
 *   pointwise(x...) {expression}: see docs/library.md
 *   sum, mean, max (x) {axes?: all where left out, keepdims = false}
 *   reshape(x) {shape: one extent may be -1}
 *   permute(x) {axes}
 *   transpose(x) {axis0 = -2, axis1 = -1}
 *   expand(x) {shape}
 *   slice(x) {axis = 0, start = 0, end?, step = 1}
 *   split(x) {sizes, axis = -1}
 *   concat(x...) {axis = -1}
 *   flip(x) {axis = 0}
 *   gather(x, index) {axis = 0}
 *   index_select(x, index) {axis = 0}
 *   arange() {end, start = 0, step = 1, dtype = "int32"}
 *   full() {shape, value}
 *   cast(x) {dtype: "float32" | "bfloat16" | "float16"}
 *   detach(x)
 *   cross_entropy(logits [..., classes], labels [...]) {ignore_index = -100}: the mean over what counts
 *   mse(a, b), bce_with_logits(logits, labels): means over all elements
 */
PLS_API int pls_op(pls_builder* builder, const char* name, const pls_value* inputs, size_t num_inputs,
                   const char* attributes, pls_value* outputs, size_t num_outputs, pls_error** error);

/* The type of a value. `*dtype` is a text that is never freed, `shape` has room for PLS_MAX_RANK sizes.
 * Each pointer may be null. */
PLS_API int pls_value_type(const pls_builder* builder, pls_value value, const char** dtype, int64_t* shape,
                           int* rank, pls_error** error);

/* Opens a scope, which holds for the ops that follow until it is closed. Scopes nest. `kind` and
 * `argument`:
 *   "module"      a name such as "layers.0", which reports, errors and profiles show
 *   "autocast"    "bf16" | "fp16" | "fp32": the precision of matrix products, as in torch.autocast
 *   "checkpoint"  null: backward recomputes the values that the scope computes instead of keeping them,
 *                 whatever the budget is. Values that enter and leave the scope are kept. The results do not
 *                 change in any bit. */
PLS_API int pls_scope_push(pls_builder* builder, const char* kind, const char* argument, pls_error** error);
PLS_API int pls_scope_pop(pls_builder* builder, pls_error** error);

/* Sets the loss, a float32 value of one element. May be called once. */
PLS_API int pls_loss(pls_builder* builder, pls_value loss, pls_error** error);

/* ---- plans */

/* Plans training steps of the builder's model. The builder is not changed and may be freed afterwards.
 * `settings` is YAML or JSON with a run file's sections `training`, `memory` and `runtime`:
 *   {"training": {"optimizer": "adamw", "learning_rate": 3e-4, "weight_decay": 0.01, "adam_beta1": 0.9, …,
 *                 "max_grad_norm": null, "loss_scale": 1024 or its map, "precision": "fp32",
 *                 "param_groups": [{"params": ["*.bias"], "weight_decay": 0}]},
 *    "memory": {"budget": "2GiB" or bytes, "recompute": "auto", "offload": "auto"},
 *    "runtime": {"device": "cpu", "threads": 2}}
 * Defaults are the run file's, except: learning_rate 1e-3 (lion: 1e-4), weight_decay as torch's optimizers
 * have it, weight_decay_scope "all", max_grad_norm null, lr_scheduler "constant", memory.offload "none" on
 * the CPU unless memory.offload_dir is given. With "gradient_accumulation_steps": 1 in `training` a step has
 * one part and gradients are not read, so that the plan has no accumulators of the gradients. A plan that
 * does not fit its budget is no error (pls_plan_fits). Errors: PLS_INVALID_ARGUMENT for settings, a builder
 * without a loss, and a trained parameter that the loss does not depend on. */
PLS_API int pls_plan_create(const pls_builder* builder, const char* settings, pls_plan** plan,
                            pls_error** error);

/* Plans a run as `plimsoll plan` does. Either `run_file` is the path of a run file or `settings` is the
 * text of one; the other is null. `overrides` are texts "dotted.path=value". No session can be made of
 * this plan. */
PLS_API int pls_plan_run(const char* run_file, const char* settings, const char* const* overrides,
                         size_t num_overrides, pls_plan** plan, pls_error** error);

/* Adds a reference; each pls_plan_free removes one. A session holds its own reference. */
PLS_API pls_plan* pls_plan_retain(pls_plan* plan);
PLS_API void pls_plan_free(pls_plan* plan);
/* 1 if the plan fits its budget, else 0. */
PLS_API int pls_plan_fits(const pls_plan* plan);
/* Bytes: all that a session of this plan maps; of a run the peak of the process. */
PLS_API int64_t pls_plan_peak_bytes(const pls_plan* plan);
/* The plan as JSON: the event `plan` of `plimsoll plan --json`, and {"fits", "peak_bytes", "least_bytes"
 * (the smallest budget that fits; null if the plan fits), "budget_bytes", "seconds" (of a step,
 * estimated), "classes": {"parameters", "optimizer_state", "gradients", "activations", …: bytes}, "pools":
 * {"device", …: bytes}, "recomputed": [scopes], "offload": text, "num_parameters"}. A plan of a builder
 * also has "inputs": [{"name", "dtype", "shape"}], "parameters": [{"name", "shape", "trained", "stored"}:
 * filters are stored as [out, height, width, in / groups]] and "buffers": [{"name", "dtype", "shape"}]. */
PLS_API const char* pls_plan_json(const pls_plan* plan);
/* `what`: "table" (the report as text) or "timeline" (an SVG of the live bytes at each op). */
PLS_API int pls_plan_text(pls_plan* plan, const char* what, const char** text, pls_error** error);

/* ---- batches */

/* A batch maps names to the caller's arrays and may be reused: setting a name again replaces its array.
 * Arrays are neither copied nor owned. They must live until the call that takes the batch returns, and are
 * only read. */
PLS_API int pls_batch_create(pls_batch** batch, pls_error** error);
PLS_API void pls_batch_free(pls_batch* batch);
PLS_API void pls_batch_clear(pls_batch* batch);
/* `part`: the index of the part, where each part of an accumulated step has arrays of its own; else 0.
 * `dtype`: "float32", "float64", "float16", "bfloat16", "int32", "int64", "int16", "int8", "uint8" or
 * "bool". The call that takes the batch converts to the input's type: float32 takes floats, rounded; int32
 * takes integers that are in range; other conversions are refused. `strides` count elements and may be
 * negative or 0; null: a dense array. */
PLS_API int pls_batch_set(pls_batch* batch, int64_t part, const char* name, const char* dtype,
                          const int64_t* shape, int rank, const int64_t* strides, const void* data,
                          pls_error** error);
/* The same from a `DLTensor*` (or a `DLManagedTensor*`, which begins with one) in the CPU's memory. */
PLS_API int pls_batch_set_dlpack(pls_batch* batch, int64_t part, const char* name, const void* tensor,
                                 pls_error** error);

/* ---- sessions */

/* Allocates all memory of the plan and initialises the parameters. `options` is JSON and may be null:
 * {"seed": 0}. Errors: PLS_DOES_NOT_FIT, with "least_bytes", for a plan that does not fit. */
PLS_API int pls_session_create(pls_plan* plan, const char* options, pls_session** session, pls_error** error);
/* Frees the memory of the session. The worker threads end with the last session. */
PLS_API void pls_session_free(pls_session* session);

/* Indices into the results of a step. */
enum {
  PLS_STEP_LOSS = 0,
  PLS_STEP_GRAD_NORM = 1, /* before clipping, of the unscaled gradients */
  PLS_STEP_SECONDS = 2,
  PLS_STEP_LEARNING_RATE = 3,
  PLS_STEP_LOSS_SCALE = 4, /* the factor of the loss; 1 if it is not scaled */
  PLS_STEP_SKIPPED = 5     /* 1: a scaled gradient overflowed; nothing was updated, the scale was lowered */
};
#define PLS_STEP_RESULTS 6

/* Makes one update from `accumulate` parts, each of the plan's shapes; loss and gradient are the mean over
 * the parts. Either each array of the batch is `accumulate` times as long on axis 0, or the batch has that
 * many parts. `learning_rate` is of this step; NaN: the plan's. `index` receives the number of this step,
 * from 1 on; `results` has room for `num_results` of the indices above; both may be null. The whole batch
 * is checked before anything runs: names, shapes, types, ranges of ids and labels (PLS_INVALID_ARGUMENT or
 * PLS_BAD_DATA with the key, what was given and what was expected). PLS_DIVERGED changes nothing (where a
 * plan has no accumulators: unless the loss alone is not finite, which the message says). */
PLS_API int pls_session_step(pls_session* session, const pls_batch* batch, double learning_rate,
                             int64_t accumulate, int64_t* index, double* results, size_t num_results,
                             pls_error** error);
/* Computes the loss without dropout; batch_norm uses its running values. Changes nothing. */
PLS_API int pls_session_evaluate(pls_session* session, const pls_batch* batch, double* loss,
                                 pls_error** error);
/* Computes the gradients of the next step's loss, neither clipped nor scaled, for pls_session_read. Changes
 * nothing. */
PLS_API int pls_session_gradients(pls_session* session, const pls_batch* batch, int64_t accumulate,
                                  double* loss, pls_error** error);

/* Copies a parameter or a buffer to `data`, which has room for its `count` elements. `what`: "parameter", or
 * "gradient" (of the last pls_session_gradients, until another step or evaluation of the session). */
PLS_API int pls_session_read(pls_session* session, const char* what, const char* name, float* data,
                             int64_t count, pls_error** error);
/* Sets a parameter or a buffer to the `count` elements of `data`. An element that is not finite is an error,
 * too. */
PLS_API int pls_session_write(pls_session* session, const char* name, const float* data, int64_t count,
                              pls_error** error);

/* The address of a parameter: float32, dense, `*count` elements, valid until pls_session_free. Steps
 * change the elements. Filters lie there in the shape "stored" of pls_plan_json. Errors: PLS_INVALID_ARGUMENT
 * if the host cannot read it there, or it is not kept in float32. */
PLS_API int pls_session_view(pls_session* session, const char* name, const float** data, int64_t* count,
                             pls_error** error);

/* The number of steps, those before a save and load included. */
PLS_API int64_t pls_session_steps(const pls_session* session);
/* {"steps", "skipped" (of these), "seed", "loss_scale", "peak_bytes" (all that is mapped), "host" (the last
 * `host_state` that was saved or loaded, or null)}; valid until the next call on the session. */
PLS_API const char* pls_session_json(pls_session* session);

/* Writes `folder` atomically, over one that a session saved before: model.safetensors with the parameters'
 * names, the optimizer's state, seed and steps. `host_state` is JSON of the caller's (such as a loader's
 * position), or null. */
PLS_API int pls_session_save(pls_session* session, const char* folder, const char* host_state,
                             pls_error** error);
/* Continues from such a folder with bit-identical results. Errors: PLS_IO if there is none, PLS_BAD_DATA
 * if it is damaged or of another model; the session is then unchanged. */
PLS_API int pls_session_load(pls_session* session, const char* folder, pls_error** error);

/* ---- whole runs
 * As the program's commands of these names, on the calling thread. `run_file`, `settings`, `overrides` as
 * pls_plan_run. */

/* These do what the program's commands of the same names do, on the calling thread. `run_file`, `settings`
 * and `overrides` are those of pls_plan_run. */

/* Receives an event of the run, a line of `plimsoll … --json`, or {"event": "message", "text"} for what
 * the program would print on stderr. Events come on the calling thread; messages may come on any thread
 * that the call waits for. Return 0 to continue. Anything else stops the run after the current step: it
 * saves a checkpoint and returns PLS_INTERRUPTED. A null callback receives nothing. */
typedef int (*pls_on_event)(const char* event, void* user);

/* Trains. `options` is JSON and may be null: {"resume": "auto" (default) | "never" | a checkpoint's
 * folder}. */
PLS_API int pls_train(const char* run_file, const char* settings, const char* const* overrides,
                      size_t num_overrides, const char* options, pls_on_event on_event, void* user,
                      pls_error** error);
/* Evaluates on data.eval. */
PLS_API int pls_evaluate(const char* run_file, const char* settings, const char* const* overrides,
                         size_t num_overrides, pls_on_event on_event, void* user, pls_error** error);
/* Generates. `request` is JSON with the options of `plimsoll generate`: {"model": DIR, "prompts": [texts],
 * "adapter", "system", "messages_files", "prompt_ids", "max_new_tokens", "temperature", "top_k", "top_p",
 * "min_p", "repetition_penalty", "seed", "stop", "raw", "ignore_eos", "chat_template", "dtype",
 * "batch_size", "threads", "memory_budget"}; the events are those of `plimsoll generate --json`. */
PLS_API int pls_generate(const char* request, pls_on_event on_event, void* user, pls_error** error);

/* The command line of the program `plimsoll`, and for that program only: it prints, handles signals and
 * forks. Returns the exit code. */
PLS_API int pls_main(int argc, char** argv);

#ifdef __cplusplus
}
#endif

#endif
