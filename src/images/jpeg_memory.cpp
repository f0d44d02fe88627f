#include "images/jpeg_memory.h"

#include <jerror.h>

#include <cstring>

// An array of coefficient blocks of a whole picture. libjpeg leaves the definition to its memory manager.
struct jvirt_barray_control {
  JBLOCKARRAY rows;
  JDIMENSION num_rows;
  JDIMENSION blocks_per_row;
  JDIMENSION max_access;
  boolean zeroed;
  jvirt_barray_control* next;
};

namespace plimsoll::images {
namespace {

JpegMemory& memory_of(j_common_ptr info) { return *reinterpret_cast<JpegMemory*>(info->mem); }

[[noreturn]] void fail_jpeg(j_common_ptr info, int code) {
  info->err->msg_code = code;
  info->err->error_exit(info);
  __builtin_unreachable();  // error_exit does not return
}

void* take(j_common_ptr info, int64_t bytes) {
  void* piece = memory_of(info).arena == nullptr ? nullptr : memory_of(info).arena->try_take(bytes);
  if (piece == nullptr) fail_jpeg(info, JERR_OUT_OF_MEMORY);
  return piece;
}

void* alloc(j_common_ptr info, int /*pool*/, size_t bytes) { return take(info, static_cast<int64_t>(bytes)); }

// `count` pointers to rows of `row_bytes` each, one behind the other.
template <class Row>
Row* alloc_rows(j_common_ptr info, int64_t row_bytes, int64_t count) {
  auto* rows = static_cast<Row*>(take(info, count * static_cast<int64_t>(sizeof(Row))));
  auto* data = static_cast<std::byte*>(take(info, count * row_bytes));
  for (int64_t i = 0; i < count; ++i) rows[i] = reinterpret_cast<Row>(data + i * row_bytes);
  return rows;
}

// Vector code writes whole vectors behind a row's end.
JSAMPARRAY alloc_sarray(j_common_ptr info, int /*pool*/, JDIMENSION samples, JDIMENSION rows) {
  return alloc_rows<JSAMPROW>(info, arena_piece(samples), rows);
}

JBLOCKARRAY alloc_barray(j_common_ptr info, int /*pool*/, JDIMENSION blocks, JDIMENSION rows) {
  return alloc_rows<JBLOCKROW>(info, int64_t{blocks} * static_cast<int64_t>(sizeof(JBLOCK)), rows);
}

// Only the compressor and two-pass colour quantisation ask for these.
jvirt_sarray_ptr request_sarray(j_common_ptr info, int, boolean, JDIMENSION, JDIMENSION, JDIMENSION) {
  fail_jpeg(info, JERR_NOT_COMPILED);
}
JSAMPARRAY access_sarray(j_common_ptr info, jvirt_sarray_ptr, JDIMENSION, JDIMENSION, boolean) {
  fail_jpeg(info, JERR_NOT_COMPILED);
}

jvirt_barray_ptr request_barray(j_common_ptr info, int /*pool*/, boolean zeroed, JDIMENSION blocks,
                                JDIMENSION rows, JDIMENSION max_access) {
  auto* array = static_cast<jvirt_barray_control*>(take(info, sizeof(jvirt_barray_control)));
  *array = {.rows = nullptr,
            .num_rows = rows,
            .blocks_per_row = blocks,
            .max_access = max_access,
            .zeroed = zeroed,
            .next = memory_of(info).arrays};
  memory_of(info).arrays = array;
  return array;
}

void realize(j_common_ptr info) {
  for (jvirt_barray_control* array = memory_of(info).arrays; array != nullptr; array = array->next) {
    if (array->rows != nullptr) continue;
    array->rows = alloc_barray(info, JPOOL_IMAGE, array->blocks_per_row, array->num_rows);
    if (array->zeroed != 0)
      std::memset(array->rows[0], 0, size_t{array->num_rows} * array->blocks_per_row * sizeof(JBLOCK));
  }
}

JBLOCKARRAY access_barray(j_common_ptr info, jvirt_barray_ptr array, JDIMENSION start, JDIMENSION rows,
                          boolean /*writable*/) {
  const bool inside = array->rows != nullptr && rows <= array->max_access && start <= array->num_rows &&
                      rows <= array->num_rows - start;
  if (!inside) fail_jpeg(info, JERR_BAD_VIRTUAL_ACCESS);
  return array->rows + start;
}

// The arena is rewound by its owner.
void free_pool(j_common_ptr info, int /*pool*/) { memory_of(info).arrays = nullptr; }
void self_destruct(j_common_ptr /*info*/) {}

}  // namespace

jpeg_memory_mgr* install(JpegMemory& memory, jpeg_decompress_struct& decompressor) {
  memory.functions = {.alloc_small = alloc,
                      .alloc_large = alloc,
                      .alloc_sarray = alloc_sarray,
                      .alloc_barray = alloc_barray,
                      .request_virt_sarray = request_sarray,
                      .request_virt_barray = request_barray,
                      .realize_virt_arrays = realize,
                      .access_virt_sarray = access_sarray,
                      .access_virt_barray = access_barray,
                      .free_pool = free_pool,
                      .self_destruct = self_destruct,
                      .max_memory_to_use = 0,
                      .max_alloc_chunk = decompressor.mem->max_alloc_chunk};
  jpeg_memory_mgr* before = decompressor.mem;
  decompressor.mem = &memory.functions;
  return before;
}

}  // namespace plimsoll::images
