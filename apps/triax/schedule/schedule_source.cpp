// SPDX-License-Identifier: Apache-2.0
#include "schedule/schedule_source.hpp"

#include <algorithm>

#include "common/errors_out.hpp"
#include "config/option_value.hpp"
#include "config/plugin_tables.hpp"
#include "train/plugins.hpp"
#include "train/train_text.hpp"

namespace triax::app {

namespace {

using config::Override;

const std::string kTable = "schedule.";

/// A flag as a setting of the config module, so that its value is parsed and checked like that of a run.
config::Setting setting_of(const Override& override) {
  config::Setting out;
  out.entry.table = "schedule";
  out.entry.key = override.key.substr(kTable.size());
  out.entry.value = {config::Written::Type::string, override.value, {}, {"--set"}};
  out.base = std::filesystem::current_path();
  out.flag = true;
  return out;
}

const Override* last_of(const std::vector<Override>& overrides, const std::string& key) {
  const auto found =
      std::find_if(overrides.rbegin(), overrides.rend(), [&](const Override& of) { return of.key == key; });
  return found == overrides.rend() ? nullptr : &*found;
}

void refuse_unknown(const plugin::Library& library, const std::vector<Override>& overrides,
                    config::Diagnostics& refusals) {
  std::string known;
  for (const triax_option& option : library.options) known += (known.empty() ? "" : ", ") + std::string(option.name);
  for (const Override& override : overrides) {
    const bool is_known = std::ranges::any_of(
        library.options, [&](const triax_option& option) { return override.key == kTable + option.name; });
    if (!is_known)
      refusals.add({"--set"}, {ErrorCode::kUnknownKey,
                               {override.key},
                               text("{} has no key {}", library.descriptor->name, override.key),
                               text("with --scheduler, --set can set its keys in [schedule]: {}",
                                    known.empty() ? "none" : known)});
  }
}

Options options_of(const plugin::Library& library, const std::vector<Override>& overrides,
                   config::Diagnostics& refusals) {
  Options out;
  for (const triax_option& option : library.options) {
    const std::string key = kTable + option.name;
    const Override* override = last_of(overrides, key);
    if (!override && !option.default_value) {
      refusals.add(
          {"--scheduler"},
          {ErrorCode::kMissing, {key}, text("{} is missing ({})", key, option.doc), text("add --set {}=...", key)});
      continue;
    }
    config::Reading reading =
        override ? config::read_setting(option, setting_of(*override)) : config::read_default(option);
    if (reading.value) {
      out.set(option.name, std::move(*reading.value));
    } else {
      refusals.add({"--set"}, {reading.code, {key}, kTable + reading.problem, reading.hint});
    }
  }
  return out;
}

} // namespace

ScheduleSource source_from_run(const std::string& file, const std::vector<Override>& overrides) {
  config::LoadResult loaded = config::load(file, overrides, {}, config::Purpose::schedule);
  ScheduleSource out;
  out.refusals = std::move(loaded.refusals);
  out.values = std::move(loaded.values);
  if (!loaded.run) return out;
  out.scheduler = loaded.run->schedule;
  out.shape = train::pipeline_shape(*loaded.run);
  out.boundaries = train::boundaries(*loaded.run);
  out.sharding = train::sharding(*loaded.run);
  out.prefetch = static_cast<int>(loaded.run->optimizer_core.prefetch);
  out.layout = train::layout_of(*loaded.run);
  out.folder = loaded.run->folder;
  return out;
}

ScheduleSource source_from_flags(const ScheduleFlags& flags, const std::vector<Override>& overrides) {
  ScheduleSource out;
  out.shape = flags.shape;
  out.layout = Layout::ptd(flags.shape.pipeline, 1, 1);
  out.is_from_flags = true;
  for (const char* flag : {"--scheduler", "--pipeline", "--microbatches"})
    out.values.push_back({flag, {}, flag, {}, {flag}});
  if (flags.has_chunks) {
    out.values.push_back({"--chunks", {}, "--chunks", {}, {"--chunks"}});
  } else {
    out.values.push_back({"--chunks", triax::to_text(flags.shape.chunks), "default"});
  }
  for (const Override& override : overrides)
    out.values.push_back({override.key, override.value, "--set", {}, {"--set"}});
  config::Diagnostics refusals;
  for (const Refusal& refusal : plugin::check_environment()) refusals.add({}, refusal);
  std::vector<plugin::SearchFolder> folders;
  folders.reserve(flags.folders.size());
  for (const std::string& folder : flags.folders) folders.push_back({folder, "--path"});
  config::PluginFinder finder(plugin::search_folders(folders), refusals, plugin::FirstLoad::probed,
                              plugin::FolderChoice::flag);
  const plugin::Library* library = finder.find(*config::find_core_table("schedule"), flags.scheduler, {"--scheduler"});
  if (library) {
    refuse_unknown(*library, overrides, refusals);
    out.scheduler = {"schedule", flags.scheduler,          library, options_of(*library, overrides, refusals),
                     "schedule", finder.shadowed(*library)};
  }
  out.refusals = refusals.sorted();
  return out;
}

ScheduleSource source_from_file(const std::string& file, const GivenShape& given) {
  ScheduleSource out;
  out.file = schedule::read_csv_file(file);
  out.scheduler.name = file;
  out.shape = out.file->shape;
  for (const std::string& problem : out.file->problems)
    out.refusals.push_back(config::diagnostic(ErrorCode::kMalformed, problem));
  if (const std::size_t more = out.file->problem_count - out.file->problems.size(); more > 0)
    out.refusals.push_back(config::diagnostic(ErrorCode::kMalformed, text("... and {} more", more)));
  if (!out.refusals.empty()) return out;
  const auto compare = [&](const char* flag, std::optional<int> wanted, int has, const char* one, const char* many) {
    if (wanted && *wanted != has)
      out.refusals.push_back(config::diagnostic(
          ErrorCode::kConflict,
          text("{} {} does not match {}, which has {} {}", flag, *wanted, file, has, has == 1 ? one : many),
          text("if the file is right, remove {}", flag)));
  };
  compare("--pipeline", given.pipeline, out.shape.pipeline, "pipeline rank", "pipeline ranks");
  compare("--chunks", given.chunks, out.shape.chunks, "chunk per rank", "chunks per rank");
  compare("--microbatches", given.microbatches, out.shape.microbatches, "microbatch", "microbatches");
  return out;
}

void print_notes(const ScheduleSource& source) {
  if (const std::string note = shadowing_note(source.scheduler); !note.empty()) print_problem("note: " + note);
}

} // namespace triax::app
