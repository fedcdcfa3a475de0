// SPDX-License-Identifier: Apache-2.0
// Flags for the duration of a stage's passes.
//
// Ownership: the flags must outlive the parsing. Errors: CLI::ParseError.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "schedule/simulate.hpp"

namespace triax::app {

/// Times of passes are the same for every stage.
struct PassFlags {
  schedule::PassTimes times;
  std::vector<double> link_ms{0.0}; // one value for all links between stages, or one for each
  /// Whether R is in the programs of all stages.
  bool recomputes() const { return times.recompute_ms > 0; }
};
/// Those that a simulation requires.
inline constexpr const char* kPassFlags[] = {"--forward-ms", "--input-ms", "--weight-ms", "--link-ms"};

/// No flag is required; the default is 0.
void add_pass_flags(CLI::App& verb, PassFlags& flags);
/// Reductions, gathers and updates; the same for every stage.
void add_stage_flags(CLI::App& verb, schedule::StageTimes& times);

/// Which of these flags are missing, as text; empty if none.
std::string missing_passes(const CLI::App& verb, const std::vector<std::string>& names);

/// After parsing: throws if all passes take no time.
void require_some_time(const PassFlags& flags);

/// Throws CLI::ValidationError if --link-ms has neither one value nor one for each link between the stages.
schedule::Costs costs_of(const PassFlags& flags, int stages);
/// "F 18.5 ms, I 18 ms, W 9.3 ms, link 0.6 ms"; "links 0.6 ms, 5 ms, 0.6 ms" if they are given for each link.
std::string to_text(const PassFlags& flags);

} // namespace triax::app
