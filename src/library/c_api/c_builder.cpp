// The builder: a trace behind a handle.
#include <span>
#include <string>
#include <vector>

#include "library/c_api/border.h"
#include "library/c_api/handles.h"

using namespace plimsoll;           // NOLINT: the interface has no namespace
using namespace plimsoll::library;  // NOLINT

namespace {

/// Errors: kInvalidArgument of a rank or a pointer that is none.
Result<std::span<const int64_t>> shape_of(const int64_t* shape, int rank) {
  if (rank < 0 || rank > PLS_MAX_RANK || (rank > 0 && shape == nullptr))
    return Error{ErrorCode::kInvalidArgument, "a shape of " + std::to_string(rank) + " axes"};
  return std::span(shape, static_cast<size_t>(rank));
}

/// Bytes of a dense array of the trace's element types.
int64_t dense_bytes(std::span<const int64_t> shape) {
  int64_t bytes = 4;
  for (const int64_t extent : shape)
    if (extent < 1 || __builtin_mul_overflow(bytes, extent, &bytes)) return 0;
  return bytes;
}

}  // namespace

int pls_builder_create(pls_builder** builder, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    *builder = new pls_builder;
    return Ok{};
  });
}

void pls_builder_free(pls_builder* builder) { delete builder; }

int pls_input(pls_builder* builder, const char* name, const char* dtype, const int64_t* shape, int rank,
              pls_value* value, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    PLS_NEEDS(value);
    PLIMSOLL_ASSIGN(const auto extents, shape_of(shape, rank));
    PLIMSOLL_ASSIGN(const ir::ValueId id,
                    builder->trace->input(std::string(text_of(name)), text_of(dtype), extents));
    *value = id.index;
    return Ok{};
  });
}

int pls_parameter(pls_builder* builder, const char* name, const int64_t* shape, int rank, const char* options,
                  pls_value* value, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    PLS_NEEDS(value);
    PLIMSOLL_ASSIGN(const auto extents, shape_of(shape, rank));
    PLIMSOLL_ASSIGN(const ParameterOptions parsed, parse_parameter_options(text_of(options)));
    PLIMSOLL_ASSIGN(const ir::ValueId id,
                    builder->trace->parameter(std::string(text_of(name)), extents, parsed));
    *value = id.index;
    return Ok{};
  });
}

int pls_constant(pls_builder* builder, const char* name, const char* dtype, const int64_t* shape, int rank,
                 const void* data, pls_value* value, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    PLS_NEEDS(data);
    PLS_NEEDS(value);
    PLIMSOLL_ASSIGN(const auto extents, shape_of(shape, rank));
    const std::span bytes(static_cast<const std::byte*>(data), static_cast<size_t>(dense_bytes(extents)));
    PLIMSOLL_ASSIGN(const ir::ValueId id,
                    builder->trace->constant(std::string(text_of(name)), text_of(dtype), extents, bytes));
    *value = id.index;
    return Ok{};
  });
}

int pls_op(pls_builder* builder, const char* name, const pls_value* inputs, size_t num_inputs,
           const char* attributes, pls_value* outputs, size_t num_outputs, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    PLS_NEEDS(outputs);
    if (num_inputs > 0) PLS_NEEDS(inputs);
    Values operands;
    for (size_t i = 0; i < num_inputs; ++i)
      operands.push_back(ir::ValueId{inputs[i] < 0 ? PLS_NONE : inputs[i]});
    PLIMSOLL_ASSIGN(const Values results, builder->trace->op(text_of(name), operands, text_of(attributes)));
    if (results.size() > num_outputs)
      return Error{ErrorCode::kInvalidArgument,
                   std::string(text_of(name)) + ": it has " + std::to_string(results.size()) + " results"};
    for (size_t i = 0; i < num_outputs; ++i)
      outputs[i] = i < results.size() ? results[i].index : pls_value{PLS_NONE};
    return Ok{};
  });
}

int pls_value_type(const pls_builder* builder, pls_value value, const char** dtype, int64_t* shape, int* rank,
                   pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    PLIMSOLL_ASSIGN(const ir::TensorType type, builder->trace->type(ir::ValueId{value}));
    if (dtype != nullptr) *dtype = type_name(type.dtype).data();
    if (rank != nullptr) *rank = type.shape.rank();
    if (shape != nullptr)
      for (int i = 0; i < type.shape.rank(); ++i) shape[i] = type.shape.dim(i);
    return Ok{};
  });
}

int pls_scope_push(pls_builder* builder, const char* kind, const char* argument, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    return builder->trace->push_scope(text_of(kind), text_of(argument));
  });
}

int pls_scope_pop(pls_builder* builder, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    return builder->trace->pop_scope();
  });
}

int pls_loss(pls_builder* builder, pls_value loss, pls_error** error) {
  return guarded(error, [&]() -> Status {
    PLS_NEEDS(builder);
    return builder->trace->set_loss(ir::ValueId{loss});
  });
}
