// SPDX-License-Identifier: Apache-2.0
#include "compare/compare_sides.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/printable.hpp"
#include "config/text_file.hpp"
#include "os/folder_access.hpp"
#include "os/input_file.hpp"
#include "os/replace_file.hpp"
#include "train/plugins.hpp"
#include "train/train_files.hpp"
#include "triax/layout.hpp"
#include "triax/text.hpp"

namespace triax::app {

namespace {

namespace fs = std::filesystem;

/// Keys that a comparison sets on both sides: every step is recorded, and nothing else takes time.
constexpr std::array<std::array<const char*, 2>, 10> kFixed = {{{"checkpoint.every", "0"},
                                                                {"checkpoint.resume", "never"},
                                                                {"eval.every", "0"},
                                                                {"log.every", "1"},
                                                                {"log.timeline", "0"},
                                                                {"log.tensorboard", "false"},
                                                                {"log.metrics", ""},
                                                                {"run.dir", ""},
                                                                {"train.stop_at", "0"},
                                                                {"train.time_limit", ""}}};

bool is_fixed(std::string_view key) {
  return std::ranges::any_of(kFixed, [key](const auto& fixed) { return key == fixed[0]; });
}

/// Keys that decide which numbers a run computes, apart from rounding.
bool is_of_model(std::string_view key) {
  constexpr std::string_view kTables[] = {"model.", "data.", "optimizer.", "lr.", "loss_scale."};
  constexpr std::string_view kKeys[] = {"batch.global", "train.seed",      "train.clip_grad", "train.precision",
                                        "train.steps",  "checkpoint.from", "checkpoint.load", "train.nonfinite"};
  const auto begins = [key](std::string_view table) { return key.starts_with(table); };
  return std::ranges::any_of(kTables, begins) || std::ranges::find(kKeys, key) != std::end(kKeys);
}

config::Diagnostic refusal(ErrorCode code, std::string message, std::string hint) {
  return config::diagnostic(code, std::move(message), std::move(hint));
}

bool is_overlay(const std::string& change) {
  return change.find('=') == std::string::npos;
}

std::string toml_text(const std::string& value) {
  return config::to_toml(config::Written{config::Written::Type::string, value, {}, {}});
}

/// A TOML that includes the run and the side's overlays, while this object exists.
class OverlaidRun {
 public:
  OverlaidRun(const std::string& run, const std::vector<std::string>& changes) {
    std::string folder = (fs::temp_directory_path() / "triax-compare-XXXXXX").string();
    if (!::mkdtemp(folder.data()))
      throw Error("cannot be created", folder, "set TMPDIR to a folder that can be written");
    file_ = fs::path(folder) / "run.toml";
    std::ofstream out(file_);
    out << "include = [" << toml_text(fs::absolute(run).string());
    for (const std::string& change : changes)
      if (is_overlay(change)) out << ", " << toml_text(fs::absolute(change).string());
    out << "]\n" << std::flush;
    if (!out) throw Error("cannot be written", file_.string(), "set TMPDIR to a folder with free space");
  }
  ~OverlaidRun() {
    std::error_code none;
    fs::remove_all(file_.parent_path(), none);
  }
  OverlaidRun(const OverlaidRun&) = delete;
  OverlaidRun& operator=(const OverlaidRun&) = delete;
  std::string file() const { return file_.string(); }

 private:
  fs::path file_; // in a separate folder
};

LoadedSide load_side(const char* name, const CompareArguments& arguments, const SideArguments& side,
                     const fs::path& folder) {
  LoadedSide out;
  out.name = name;
  out.variables = side.variables;
  std::optional<OverlaidRun> overlaid;
  if (std::ranges::any_of(side.changes, is_overlay)) overlaid.emplace(arguments.file, side.changes);
  TrainArguments train;
  train.file = overlaid ? overlaid->file() : arguments.file;
  train.overrides = arguments.overrides;
  const std::string flag = std::string("--") + (name[0] == 'A' ? "a" : "b");
  for (const std::string& change : side.changes) {
    if (is_overlay(change)) continue;
    const std::size_t equals = change.find('=');
    train.overrides.push_back({change.substr(0, equals), change.substr(equals + 1), flag});
  }
  for (const auto& [key, value] : kFixed)
    if (*value || std::string_view(key) == "train.time_limit") train.overrides.push_back({key, value});
  train.overrides.push_back({"run.dir", folder.string()});
  train.overrides.push_back({"log.metrics", (folder / "metrics.jsonl").string()});
  out.loaded = load_run(train);
  return out;
}

std::map<std::string, std::string> values_of(const LoadedSide& side) {
  std::map<std::string, std::string> out;
  for (const config::ResolvedValue& value : side.loaded.values)
    if (!is_fixed(value.key)) out[value.key] = value.value;
  return out;
}

std::vector<KeyDifference> differences(const LoadedSide& a, const LoadedSide& b) {
  const std::map<std::string, std::string> of_a = values_of(a), of_b = values_of(b);
  std::map<std::string, std::string> all = of_a;
  all.insert(of_b.begin(), of_b.end());
  std::vector<KeyDifference> out;
  for (const auto& [key, value] : all) {
    const auto in_a = of_a.find(key), in_b = of_b.find(key);
    const std::string left = in_a == of_a.end() ? "" : in_a->second, right = in_b == of_b.end() ? "" : in_b->second;
    if (left != right) out.push_back({key, left, right});
  }
  return out;
}

std::vector<VariableDifference> variable_differences(const SideArguments& a, const SideArguments& b) {
  std::map<std::string, VariableDifference> all;
  for (const os::Variable& of : a.variables) all[of.name].a = of.value;
  for (const os::Variable& of : b.variables) all[of.name].b = of.value;
  std::vector<VariableDifference> out;
  for (const auto& [name, of] : all)
    if (of.a != of.b) out.push_back({name, of.a, of.b});
  return out;
}

/// Whether a key configures the communicator of an axis.
bool is_of_axis(const std::string& key, const std::string& axis, const Layout& layout) {
  const auto is_table_of = [&key](const Axis& one) { return key.starts_with(text("comm.{}.", one.name)); };
  if (key.starts_with(text("comm.{}.", axis))) return true;
  return key.starts_with("comm.") && std::ranges::none_of(layout.axes(), is_table_of);
}

/// Axes of more than one rank on both sides, whose communicator differs.
void find_differing_axes(LoadedSides& sides) {
  const Layout a = train::layout_of(sides.a.run()), b = train::layout_of(sides.b.run());
  for (const Axis& axis : a.axes()) {
    const auto differs = [&](const KeyDifference& one) { return is_of_axis(one.key, axis.name, a); };
    if (axis.size > 1 && b.size(axis.name) > 1 && std::ranges::any_of(sides.differences, differs))
      sides.differing_axes.push_back(axis.name);
  }
}

std::vector<config::Diagnostic> fixed_keys(const CompareArguments& arguments) {
  std::vector<config::Diagnostic> out;
  const auto refuse = [&out](const std::string& key, const std::string& flag, const std::string& why,
                             const char* hint) {
    out.push_back(config::file_diagnostic(ErrorCode::kConflict, Error(why, flag, hint), key));
  };
  const auto check = [&refuse](const std::string& key, const std::string& flag) {
    if (!is_fixed(key)) return;
    refuse(key, flag, text("{} cannot be set: triax compare sets it", key),
           key == "run.dir" ? "--dir names the folder of the comparison" : "leave it out");
  };
  const auto check_side_key = [&](const std::string& key, const std::string& flag) {
    if (key == "train.steps")
      refuse(key, flag, "train.steps cannot differ: both sides run the same steps", "use --set train.steps");
    check(key, flag);
  };
  const auto check_side = [&check_side_key](const std::string& flag, const SideArguments& side) {
    for (const std::string& change : side.changes) {
      if (!is_overlay(change)) check_side_key(change.substr(0, change.find('=')), flag);
      if (is_overlay(change))
        for (const config::Entry& entry : config::read_document(change, change, 0).entries)
          check_side_key(text("{}.{}", entry.table, entry.key), text("{} {}", flag, shortened(change)));
    }
  };
  for (const config::Override& of : arguments.overrides) check(of.key, "--set");
  check_side("--a", arguments.a);
  check_side("--b", arguments.b);
  return out;
}

/// Overlays that do not exist; else the TOML that includes them would be named.
std::vector<config::Diagnostic> missing_overlays(const CompareArguments& arguments) {
  std::vector<config::Diagnostic> out;
  for (const auto& [flag, side] : {std::pair{"--a", &arguments.a}, {"--b", &arguments.b}})
    for (const std::string& change : side->changes)
      if (is_overlay(change))
        if (const std::string wrong = os::why_not_a_file(change); !wrong.empty())
          out.push_back(config::file_diagnostic(
              ErrorCode::kNotFound,
              Error(text("\"{}\" {}", shortened(change), wrong), flag, "give a TOML file, or a key as TABLE.KEY=VALUE"),
              flag));
  return out;
}

std::string list_of(const std::vector<KeyDifference>& of) {
  std::string out;
  for (const KeyDifference& one : main_differences(of, {})) out += (out.empty() ? "" : ", ") + one.key;
  return out;
}

std::vector<config::Diagnostic> refuse_equal(const CompareArguments& arguments, const LoadedSides& sides) {
  const bool equal = sides.differences.empty() && sides.variables.empty();
  if (equal && !arguments.same)
    return {refusal(ErrorCode::kConflict, "configurations A and B are equal",
                    "give a difference, such as --b comm.plugin=comm-mpi; or --same to see what a comparison of equal "
                    "sides shows on this machine")};
  std::string all = list_of(sides.differences);
  for (const VariableDifference& one : sides.variables) all += (all.empty() ? "" : ", ") + one.name;
  if (!equal && arguments.same)
    return {refusal(ErrorCode::kConflict, text("--same: the sides differ in {}", all),
                    "leave out --same, or the difference")};
  return {};
}

std::vector<config::Diagnostic> refuse_models(const CompareArguments& arguments, LoadedSides& sides) {
  std::vector<KeyDifference> of_model;
  std::ranges::copy_if(sides.differences, std::back_inserter(of_model),
                       [](const KeyDifference& one) { return is_of_model(one.key); });
  sides.models_differ = !of_model.empty();
  if (of_model.empty() || arguments.different_models) return {};
  return {refusal(
      ErrorCode::kConflict,
      text("the sides differ in {}: they train different models, so their losses cannot agree", list_of(of_model)),
      "--different-models compares their times only")};
}

/// A communicator that carries nothing cannot be compared.
std::vector<config::Diagnostic> refuse_silent(const LoadedSides& sides) {
  const auto is_of_comm = [](const KeyDifference& one) { return one.key.starts_with("comm."); };
  if (sides.differences.empty() || !sides.variables.empty() || !sides.differing_axes.empty() ||
      !std::ranges::all_of(sides.differences, is_of_comm))
    return {};
  return {refusal(ErrorCode::kConflict,
                  text("the sides differ in {} only, but no rank communicates through it", list_of(sides.differences)),
                  "use more ranks on the axis: parallel.pipeline, parallel.tensor or parallel.data")};
}

std::vector<config::Diagnostic> refuse_steps(const CompareArguments& arguments, const LoadedSides& sides) {
  const std::int64_t steps = std::min(sides.a.run().train.steps, sides.b.run().train.steps);
  if (steps >= arguments.plan.min_steps()) return {};
  return {refusal(ErrorCode::kOutOfRange,
                  text("train.steps must be at least {} for {} rounds, got {}", arguments.plan.min_steps(),
                       arguments.plan.rounds, steps),
                  text("--set train.steps={}, or {} for five more steps in each turn; or fewer --rounds (at least {})",
                       arguments.plan.min_steps(), arguments.plan.min_steps() + 2 * arguments.plan.rounds * 5,
                       compare::kMinRounds))};
}

/// --dir; else runs/NAME-compare, or with a number that no earlier comparison has.
fs::path folder_of(const CompareArguments& arguments) {
  if (!arguments.folder.empty()) return fs::absolute(arguments.folder);
  const std::string name = "runs/" + fs::path(arguments.file).stem().string() + "-compare";
  fs::path out = fs::absolute(name);
  for (int number = 1; fs::exists(out); ++number) out = fs::absolute(text("{}-{}", name, number));
  return out;
}

std::vector<config::Diagnostic> refuse_folder(const fs::path& folder) {
  std::error_code none;
  if (fs::exists(folder, none) && !(fs::is_directory(folder, none) && fs::is_empty(folder, none)))
    return {refusal(ErrorCode::kAlreadyExists, text("--dir: {} exists, but is not an empty folder", folder.string()),
                    "choose another folder: nothing of an earlier comparison is replaced")};
  if (const std::string why = os::why_not_writable(folder); !why.empty())
    return {refusal(ErrorCode::kNotWritable, text("--dir: {} cannot be written: {}", folder.string(), why),
                    "choose another folder with --dir")};
  return {};
}

} // namespace

int LoadedSide::ranks() const {
  return train::layout_of(run()).world_size();
}

std::vector<config::Diagnostic> load_sides(const CompareArguments& arguments, LoadedSides& out) {
  if (config::is_piped(arguments.file))
    return {refusal(ErrorCode::kUnsupported,
                    text("{}: is standard input or a pipe, but each side reads the TOML", arguments.file),
                    "write it to a file")};
  if (std::vector<config::Diagnostic> refused = missing_overlays(arguments); !refused.empty()) return refused;
  if (std::vector<config::Diagnostic> refused = fixed_keys(arguments); !refused.empty()) return refused;
  out.folder = folder_of(arguments);
  if (std::vector<config::Diagnostic> refused = refuse_folder(out.folder); !refused.empty()) return refused;
  out.a = load_side("A", arguments, arguments.a, out.folder / "a");
  if (!out.a.loaded.run) return out.a.loaded.refusals;
  out.b = load_side("B", arguments, arguments.b, out.folder / "b");
  if (!out.b.loaded.run) return out.b.loaded.refusals;
  out.differences = differences(out.a, out.b);
  for (const SideArguments* side : {&arguments.a, &arguments.b})
    for (const std::string& change : side->changes) out.given.insert(change.substr(0, change.find('=')));
  out.variables = variable_differences(arguments.a, arguments.b);
  find_differing_axes(out);
  for (const std::vector<config::Diagnostic>& refused :
       {refuse_equal(arguments, out), refuse_models(arguments, out), refuse_silent(out), refuse_steps(arguments, out)})
    if (!refused.empty()) return refused;
  return {};
}

std::vector<KeyDifference> main_differences(const std::vector<KeyDifference>& all, const std::set<std::string>& given) {
  const auto table_of = [](const std::string& key) { return key.substr(0, key.rfind('.')); };
  std::set<std::string> replaced;
  for (const KeyDifference& one : all)
    if (one.key.ends_with(".plugin")) replaced.insert(table_of(one.key));
  std::vector<KeyDifference> out;
  for (const KeyDifference& one : all)
    if (one.key.ends_with(".plugin") || given.contains(one.key) || !replaced.contains(table_of(one.key)))
      out.push_back(one);
  return out;
}

compare::SideRequest request_of(const LoadedSide& side, const fs::path& folder) {
  // Its configuration as it is now: the files that it was read from may change while the sides take turns.
  std::error_code why;
  fs::create_directories(folder, why);
  if (why)
    throw Error(text("cannot be created: {}", why.message()), folder.string(), "choose another folder with --dir");
  const fs::path file = folder / "side.toml";
  try {
    os::replace_file(file, config::to_toml(side.loaded));
  } catch (const Error& error) {
    throw Error(error.message(), error.where(), "free space there, or choose another folder with --dir");
  }
  const double silent_s = 2 * side.run().train.stall_timeout_s + side.run().launch.start_timeout_s;
  return {side.name, side.variables, folder, file.string(), side.ranks(), silent_s};
}

} // namespace triax::app
