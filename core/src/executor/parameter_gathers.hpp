// SPDX-License-Identifier: Apache-2.0
// All-gathers of parameters that ranks update in parts (schedule::Sharding): after a step or before each use, and after
// the master weights were loaded.
//
// Threads: the rank's main thread. Blocking: never. Errors: those of the communicators.
#pragma once

#include "executor/rank_state.hpp"
#include "executor/transfer_streams.hpp"
#include "triax/communicator.hpp"
#include "triax/model.hpp"

namespace triax::executor {

/// Posts the all-gathers of a stage on `stream`. On the host, waits for them, so that an error is located at the
/// action.
void gather_parameters(RankState& state, int stage, const Groups& groups, Device& device, Stream& stream, ActionId id);

/// The same of an UNSHARD of `stage`, into a slot of Pool::weights, after the current work of `compute`. Later work
/// waits for it with TransferStreams::make_wait().
void unshard_parameters(const Parameters& parameters, const Stage& stage, int slot, const Groups& groups,
                        TransferStreams& transfers, Stream& compute, ActionId id);

/// Makes the working weights of all layers from the master weights. All ranks must call it. Nothing is communicated if
/// no rank holds a part of the master weights, or if UNSHARD gathers the weights before they are read. Waits, until
/// `deadline` at most, if the master weights are offloaded.
void refresh_working(RankState& state, Device& device, const Groups& groups, Stream& stream, Deadline deadline);

} // namespace triax::executor
