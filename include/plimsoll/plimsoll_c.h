/* The C interface of Plimsoll: the one border of libplimsoll.so.0, over which every language's package
 * stands.
 *
 *   builder ── inputs, parameters, ops, loss ──► plan ──► session ── batch ──► step, evaluate, read, save
 *   run file ─────────────────────────────────► plan, train, evaluate, generate
 *
 * Conventions
 * - No struct and no C++ type crosses the border. Handles are opaque, texts are UTF-8 and end with a zero,
 *   attributes, options and results that grow are JSON; settings are those of the run file (docs/settings.md)
 * as YAML or JSON. The interface only grows: what stands here keeps its meaning.
 * - What can fail returns an int: PLS_OK or a code, which is the program's exit code for the same error. Then
 * `*error` is a handle that says more; free it with pls_error_free. `error` may be null. On success it is not
 * written.
 * - A text that a function returns belongs to its handle. It is valid until the handle is freed; where the
 * function says so, until its next call on that handle.
 * - A handle may be used from any thread, by one at a time: calls on one session wait for each other.
 * Different handles may be used at the same time. Nothing calls back from another thread than the caller's.
 * - After fork() the child uses nothing that was made before: calls on sessions of the parent return
 * PLS_INTERNAL with the word fork, and to free one does nothing.
 * - Nothing is printed, no signal handler is installed, the process never exits or aborts, its locale and its
 * working directory are not read but for paths that the caller gives. An internal error returns PLS_INTERNAL;
 * the session that met it answers every later call with the same error.
 * - "_free" functions take null.
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

/* A value of a builder: an input, a parameter, the result of an op. PLS_NONE is an operand that is left out.
 */
typedef int32_t pls_value;
#define PLS_NONE (-1)
/* The most axes that a tensor has. */
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

/* "0.1.0". */
PLS_API const char* pls_version(void);
/* The version of this interface: rises when a function is added. */
PLS_API int pls_abi_version(void);
#define PLS_ABI_VERSION 1
/* JSON: [{"name", "summary", "operands": [names, "?" behind those that may be left out, "..." behind a list],
 * "attributes": {name: {"required", "default"}}}] of all that pls_op takes. */
PLS_API const char* pls_ops(void);
/* Positions [first, first + count) of epoch `epoch` over `size` examples, in the order that the program
 * itself would read them with that seed, in constant memory: a permutation of 0 … size - 1. Needs no handle,
 * works after fork. */
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

/* A parameter, float32. The same name again, with the same shape, is the same parameter (tied weights); with
 * another shape or other options it is an error. `options` JSON, may be null:
 *   {"init": "zeros" (default) | "ones" | "constant" | "uniform" | "normal",
 *    "value": of "constant", "bound": of "uniform" in [-bound, bound), "std": of "normal",
 *    "trained": true,             false: frozen, without gradient and optimizer state
 *    "kind": "linear" | "embedding" | "vector"}   default: by rank, one axis is a vector; Muon and groups ask
 *                                                  for it
 * A draw depends on the session's seed, the name and the element alone, not on the order of calls. */
PLS_API int pls_parameter(pls_builder* builder, const char* name, const int64_t* shape, int rank,
                          const char* options, pls_value* value, pls_error** error);

/* A tensor whose elements are known now and never change (a torch buffer, a mask). `data` is dense and is
 * copied; dtype "float32" or "int32". */
PLS_API int pls_constant(pls_builder* builder, const char* name, const char* dtype, const int64_t* shape,
                         int rank, const void* data, pls_value* value, pls_error** error);

/* Appends the op `name`. `attributes` JSON, null for none. `outputs` has room for `num_outputs`, which is at
 * least as many as the op has results (pls_ops; split has as many as sizes). Shapes broadcast as in numpy
 * where the op is elementwise. Errors name the op, the operand and the scope. The ops:
 *
 *   linear(x, weight [out, in], bias?)
 *   embedding(weight [rows, dim], ids) {padding_idx?}
 *   rms_norm(x, weight) {eps}
 *   layer_norm(x, weight, bias) {eps}
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

/* The type of a value: `*dtype` is a constant text, `shape` has room for PLS_MAX_RANK. Each pointer may be
 * null. */
PLS_API int pls_value_type(const pls_builder* builder, pls_value value, const char** dtype, int64_t* shape,
                           int* rank, pls_error** error);

/* Scopes nest and end in the reverse order. `kind` and `argument`:
 *   "module"      a name, "layers.0": reports, errors and profiles say it
 *   "autocast"    "bf16" | "fp16" | "fp32": the precision of products in there, as torch.autocast
 *   "checkpoint"  null: what is computed in there is computed again in backward and not kept, whatever the
 * budget. The values that enter and leave are kept. Changes no bit. */
PLS_API int pls_scope_push(pls_builder* builder, const char* kind, const char* argument, pls_error** error);
PLS_API int pls_scope_pop(pls_builder* builder, pls_error** error);

/* The loss: a float32 of one element. Once. */
PLS_API int pls_loss(pls_builder* builder, pls_value loss, pls_error** error);

/* ---- plans */

/* Plans training steps of the builder's model; the builder is not changed and not needed afterwards.
 * `settings`: YAML or JSON of a run file's sections `training`, `memory` and `runtime`, so far as they
 * concern a model of one's own:
 *   {"training": {"optimizer": "adamw", "learning_rate": 3e-4, "weight_decay": 0.01, "adam_beta1": 0.9, …,
 *                 "max_grad_norm": null, "loss_scale": 1024 or its map, "precision": "fp32",
 *                 "param_groups": [{"params": ["*.bias"], "weight_decay": 0}]},
 *    "memory": {"budget": "2GiB" or bytes, "recompute": "auto", "offload": "auto"},
 *    "runtime": {"device": "cpu", "threads": 2}}
 * Defaults are the run file's, but for these: learning_rate 1e-3 (lion: 1e-4), weight_decay as torch's
 * optimizers have it, weight_decay_scope "all", max_grad_norm null, lr_scheduler "constant", memory.offload
 * "none" on the CPU unless memory.offload_dir is given. A plan that does not fit is no error. Errors:
 * PLS_INVALID_ARGUMENT for settings, a builder without a loss, a parameter that the loss does not depend on.
 */
PLS_API int pls_plan_create(const pls_builder* builder, const char* settings, pls_plan** plan,
                            pls_error** error);

/* Plans a run as `plimsoll plan` does. Either `run_file`, a path, or `settings`, the text of one; the other
 * is null. `overrides`: texts "dotted.path=value". A session cannot be made of it. */
PLS_API int pls_plan_run(const char* run_file, const char* settings, const char* const* overrides,
                         size_t num_overrides, pls_plan** plan, pls_error** error);

/* Adds a reference, which pls_plan_free takes away again. Sessions hold their own. */
PLS_API pls_plan* pls_plan_retain(pls_plan* plan);
PLS_API void pls_plan_free(pls_plan* plan);
/* 1 where it fits its budget, else 0. */
PLS_API int pls_plan_fits(const pls_plan* plan);
/* All that a session of this plan maps, or a run's process peak. Bytes. */
PLS_API int64_t pls_plan_peak_bytes(const pls_plan* plan);
/* {"fits", "peak_bytes", "least_bytes" (the least budget that fits; null where the plan fits),
 * "budget_bytes", "seconds" (of a step, estimated), "classes": {"parameters", "optimizer_state", "gradients",
 * "activations", …: bytes}, "pools": {"device", …: bytes}, "recomputed": [scopes], "offload": text, "inputs":
 * [{"name", "dtype", "shape"}], "parameters": [{"name", "shape", "trained"}], "num_parameters"}; of a run:
 * the event `plan` of `plimsoll plan --json`, and these names. */
PLS_API const char* pls_plan_json(const pls_plan* plan);
/* `what`: "table" (the report for people), "timeline" (an SVG of what is alive at each op). */
PLS_API int pls_plan_text(pls_plan* plan, const char* what, const char** text, pls_error** error);

/* ---- batches */

/* Names and pointers, reusable: setting a name again replaces it. Arrays are not copied and not owned: they
 * live until the call that the batch is given to has returned, and are only read. */
PLS_API int pls_batch_create(pls_batch** batch, pls_error** error);
PLS_API void pls_batch_free(pls_batch* batch);
PLS_API void pls_batch_clear(pls_batch* batch);
/* `part`: 0, or which of the parts of an accumulated step where each has arrays of its own. `dtype`:
 * "float32", "float64", "float16", "bfloat16", "int32", "int64", "int16", "int8", "uint8" or "bool"; what is
 * not the input's is converted where no value changes, else refused when the batch is used (float32 takes the
 * floats, rounded; int32 takes the integers that are in range). `strides` in elements, may be null for a
 * dense array, may be negative or 0. */
PLS_API int pls_batch_set(pls_batch* batch, int64_t part, const char* name, const char* dtype,
                          const int64_t* shape, int rank, const int64_t* strides, const void* data,
                          pls_error** error);
/* The same from a `DLTensor*` (or a `DLManagedTensor*`, which begins with one) in the CPU's memory. */
PLS_API int pls_batch_set_dlpack(pls_batch* batch, int64_t part, const char* name, const void* tensor,
                                 pls_error** error);

/* ---- sessions */

/* Takes all memory of the plan, and draws the parameters. `options` JSON, may be null: {"seed": 0}. Errors:
 * PLS_DOES_NOT_FIT with least_bytes for a plan that does not fit. */
PLS_API int pls_session_create(pls_plan* plan, const char* options, pls_session** session, pls_error** error);
/* Gives everything back; the threads end with the last session. */
PLS_API void pls_session_free(pls_session* session);

/* Places in the results of a step. */
enum {
  PLS_STEP_LOSS = 0,
  PLS_STEP_GRAD_NORM = 1, /* before clipping, of the unscaled gradients */
  PLS_STEP_SECONDS = 2,
  PLS_STEP_LEARNING_RATE = 3,
  PLS_STEP_LOSS_SCALE = 4, /* that the loss was multiplied with; 1 where it is not scaled */
  PLS_STEP_SKIPPED = 5     /* 1: a scaled gradient overflowed, nothing was updated, the scale has fallen */
};
#define PLS_STEP_RESULTS 6

/* One update from `accumulate` parts of the plan's shapes: loss and gradient are the parts' mean. Either each
 * array of the batch is `accumulate` times as long on axis 0, or the batch has that many parts.
 * `learning_rate`: of this step; NaN: the plan's. `index`: of this step, from 1 on; `results`: room for
 * `num_results` of the places above; both may be null. A batch is checked as a whole before anything runs:
 * names, shapes, types, ranges of ids and labels (PLS_INVALID_ARGUMENT or PLS_BAD_DATA naming the key, what
 * came and what was wanted). PLS_DIVERGED changes nothing. */
PLS_API int pls_session_step(pls_session* session, const pls_batch* batch, double learning_rate,
                             int64_t accumulate, int64_t* index, double* results, size_t num_results,
                             pls_error** error);
/* The loss without dropout. Changes nothing. */
PLS_API int pls_session_evaluate(pls_session* session, const pls_batch* batch, double* loss,
                                 pls_error** error);
/* Gradients of the next step's loss, neither clipped nor scaled; read them by pls_session_read. Changes
 * nothing. */
PLS_API int pls_session_gradients(pls_session* session, const pls_batch* batch, int64_t accumulate,
                                  double* loss, pls_error** error);

/* `what`: "parameter" or "gradient" (of the last pls_session_gradients; any other call on the session ends
 * them). `count` elements of `data`, dense, as many as the parameter has. */
PLS_API int pls_session_read(pls_session* session, const char* what, const char* name, float* data,
                             int64_t count, pls_error** error);
/* Writes a parameter, dense, as many elements as it has. Errors also where one is not finite. */
PLS_API int pls_session_write(pls_session* session, const char* name, const float* data, int64_t count,
                              pls_error** error);

/* Where a parameter lies, without a copy: float32, dense, `*count` elements, valid until pls_session_free;
 * steps change it. PLS_INVALID_ARGUMENT where the host does not reach it or it is not kept in float32. */
PLS_API int pls_session_view(pls_session* session, const char* name, const float** data, int64_t* count,
                             pls_error** error);

/* Steps that have been made, in all sessions from the first on: saved and loaded. */
PLS_API int64_t pls_session_steps(const pls_session* session);
/* {"steps", "seed", "loss_scale", "peak_bytes" (what is mapped), "host": what was last saved or loaded as
 * `host_state`, or null}; valid until the next call on the session. */
PLS_API const char* pls_session_json(pls_session* session);

/* Writes `folder`, whole or not at all, over one that a session saved before: model.safetensors with the
 * parameters' names, the optimizer's state, seed and steps. `host_state`: JSON of the caller's own (a
 * loader's position), or null.
 */
PLS_API int pls_session_save(pls_session* session, const char* folder, const char* host_state,
                             pls_error** error);
/* Goes on from such a folder, bit for bit. Errors: PLS_IO where there is none, PLS_BAD_DATA where it is
 * damaged or another model's (which name, what there is, what was wanted); the session is then as before. */
PLS_API int pls_session_load(pls_session* session, const char* folder, pls_error** error);

/* ---- whole runs
 * As the program's commands of these names, on the calling thread. `run_file`, `settings`, `overrides` as
 * pls_plan_run. */

/* An event of the run, a line of `plimsoll … --json`; also {"event": "message", "text"} for what the program
 * would tell people on stderr. Called on the calling thread, or for messages on any thread that the caller's
 * call waits for. Returns 0 to go on; anything else asks the run to stop: after the step at hand it saves and
 * returns PLS_INTERRUPTED. Null: nobody listens. */
typedef int (*pls_on_event)(const char* event, void* user);

/* Trains. `options` JSON, may be null: {"resume": "auto" (default) | "never" | a checkpoint's folder}. */
PLS_API int pls_train(const char* run_file, const char* settings, const char* const* overrides,
                      size_t num_overrides, const char* options, pls_on_event on_event, void* user,
                      pls_error** error);
/* Evaluates on data.eval. */
PLS_API int pls_evaluate(const char* run_file, const char* settings, const char* const* overrides,
                         size_t num_overrides, pls_on_event on_event, void* user, pls_error** error);
/* Generates. `request` JSON, as the options of `plimsoll generate`: {"model": DIR, "prompts": [texts],
 * "adapter", "system", "messages_files", "prompt_ids", "max_new_tokens", "temperature", "top_k", "top_p",
 * "min_p", "repetition_penalty", "seed", "stop", "raw", "ignore_eos", "chat_template", "dtype", "batch_size",
 * "threads", "memory_budget"}; events as `plimsoll generate --json`. */
PLS_API int pls_generate(const char* request, pls_on_event on_event, void* user, pls_error** error);

/* The command line, for the program that has this library beside it and for no other: it prints, handles
 * signals and forks. Returns the exit code. */
PLS_API int pls_main(int argc, char** argv);

#ifdef __cplusplus
}
#endif

#endif
