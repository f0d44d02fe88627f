// Plimsoll's C++ interface: trains models of your own within a memory budget that is planned before step 1.
//
//   Module::forward() ── plan({.inputs, .loss, .optimizer, …}) ──► Plan ──► Session ── step(batch)
//
// The headers are inline over the C functions of libplimsoll.so.0 (plimsoll_c.h). docs/library.md describes
// the interface.
#pragma once

#include "plimsoll/array.h"         // Array, Tensor, Batch: inputs
#include "plimsoll/data_loader.h"   // DataLoader: batches of your own data
#include "plimsoll/error.h"         // Error and its kinds
#include "plimsoll/functional.h"    // functions of values
#include "plimsoll/image_layers.h"  // Conv1d, Conv2d, BatchNorm2d, GroupNorm
#include "plimsoll/images.h"        // functions of images
#include "plimsoll/layers.h"        // Linear, Embedding, RMSNorm, LayerNorm, Dropout
#include "plimsoll/make_plan.h"     // plan()
#include "plimsoll/module_list.h"   // Module, Parameter, ModuleList
#include "plimsoll/optimizers.h"    // AdamW and others, with groups
#include "plimsoll/plan.h"          // Plan: memory and time of a step
#include "plimsoll/regions.h"       // checkpoint, checkpoint_sequential, autocast
#include "plimsoll/result.h"        // Result, where exceptions are switched off
#include "plimsoll/schedules.h"     // learning rates
#include "plimsoll/session.h"       // Session: steps
