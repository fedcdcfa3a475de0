// SPDX-License-Identifier: Apache-2.0
// The flags with which verbs are told how long the passes of a stage take.
//
// Threads: one. Ownership: values; the flags must outlive the parsing. Blocking: never. Errors: CLI::ParseError.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "schedule/simulate.hpp"

namespace triax::app {

/// The same for every stage.
struct PassFlags {
  schedule::PassTimes times;
  double link_ms = 0;
};
inline constexpr const char* kPassFlags[] = {"--forward-ms", "--input-ms", "--weight-ms", "--link-ms"};

/// None is required, and each is 0 unless given.
void add_pass_flags(CLI::App& verb, PassFlags& flags);

/// Which of the flags named were not given, in words; empty: none.
std::string missing_passes(const CLI::App& verb, const std::vector<std::string>& names);

/// Of what was parsed: refuses passes that all take no time.
void require_some_time(const PassFlags& flags);

schedule::Costs costs_of(const PassFlags& flags, int stages);
/// "F 18.5 ms, I 18 ms, W 9.3 ms, link 0.6 ms"
std::string to_words(const PassFlags& flags);

} // namespace triax::app
