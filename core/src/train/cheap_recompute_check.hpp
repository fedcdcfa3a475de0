// SPDX-License-Identifier: Apache-2.0
// Whether a run's plugins can recompute as memory.recompute = "cheap" requires.
//
// Threads: the main thread. Blocking: creates the blocks of the model. Errors: those of plugins.
#pragma once

#include "train/plugins.hpp"

namespace triax::train {

/// Why a block has no CheapRecompute, or the kernel set cannot repeat the bits of its operations (RepeatLimits); each
/// reason once.
Refusals check_cheap_block(const config::RunConfig& run, Layer& block, const LayerContext& context,
                           const RankPlugins& plugins);

/// Blocks without CheapRecompute, and operations whose bits the kernel set cannot repeat (RepeatLimits); each reason
/// once. None if no stage has "cheap".
Refusals check_cheap_recompute(const config::RunConfig& run, const Layout& layout, const RankPlugins& plugins);

} // namespace triax::train
