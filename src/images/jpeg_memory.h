// libjpeg's memory manager over an arena, so that a picture's decoding allocates nothing from the heap.
#pragma once

#include <cstddef>
#include <cstdio>
// jpeglib.h takes FILE and size_t for granted.
#include <jpeglib.h>

#include "images/arena.h"

namespace plimsoll::images {

/// Makes all later allocations of the decompressor come from `*arena`, which the caller exchanges from
/// picture to picture. Nothing is freed singly. What exceeds the arena ends in libjpeg's error handler
/// (JERR_OUT_OF_MEMORY). `manager` is what it stands in and outlives the decompressor.
struct JpegMemory {
  jpeg_memory_mgr functions;  // first: libjpeg knows its address alone
  Arena* arena = nullptr;
  jvirt_barray_control* arrays = nullptr;  ///< requested by the current picture, not yet or already realised
};

/// Exchanges the memory manager of a decompressor that has just been created. Returns the one that it had,
/// for its destruction.
jpeg_memory_mgr* install(JpegMemory& memory, jpeg_decompress_struct& decompressor);

}  // namespace plimsoll::images
