// SPDX-License-Identifier: Apache-2.0
#include "doctor/load_checks.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>

#include "doctor/interface_changes.hpp"
#include "doctor/link_checks.hpp"
#include "plugin/elf_symbols.hpp"
#include "plugin/loader.hpp"
#include "plugin/plugin_descriptor.hpp"
#include "plugin/plugin_kinds.hpp"
#include "plugin/probe_answer.hpp"
#include "plugin/probe_process.hpp"
#include "plugin/toolchain.hpp"
#include "plugin/trial_object.hpp"
#include "triax/abi.h"
#include "triax/error.hpp"

namespace triax::doctor {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr std::string_view kEntryCheck = "entry";
constexpr std::string_view kObjectCheck = "object";
constexpr std::array kDescriptorChecks = {plugin::kAbiCheck,  plugin::kToolchainCheck, plugin::kInterfaceCheck,
                                          plugin::kNameCheck, plugin::kContentsCheck,  plugin::kOptionsCheck};

Json error_json(const Error& error) {
  return {{"message", error.message()}, {"next", error.hint()}};
}

Check problem_of(std::string_view name, const Json& error) {
  return {std::string(name), Outcome::problem, error.at("message"), {}, error.at("next")};
}

std::string text_of(const char* text) {
  return text ? text : "";
}

bool has_problem(const Diagnosis& diagnosis, std::string_view name) {
  return std::ranges::any_of(
      diagnosis.checks, [name](const Check& check) { return check.name == name && check.outcome == Outcome::problem; });
}

void skip(std::string_view name, std::string_view reason, Diagnosis& out) {
  out.checks.push_back({std::string(name), Outcome::skipped, text("not checked: {}", reason)});
}

void skip_descriptor(std::string_view reason, Diagnosis& out) {
  for (const std::string_view name : kDescriptorChecks)
    if (std::ranges::find(out.checks, name, &Check::name) == out.checks.end()) skip(name, reason, out);
  skip(kObjectCheck, reason, out);
}

void skip_after_load(std::string_view reason, Diagnosis& out) {
  skip(kEntryCheck, reason, out);
  skip_descriptor(reason, out);
}

/// In a child: loads the library, calls its entry function, and checks the descriptor.
std::string loaded_facts(const fs::path& file, bool has_entry) {
  Json out;
  try {
    plugin::load_unchecked(file);
    out["loads"] = true;
    if (!has_entry) return plugin::pack(out);
    const triax_plugin* const descriptor = plugin::unchecked_descriptor(file);
    const plugin::CallScope call(file.stem().string(), "its descriptor", file);
    std::vector<triax_option> options;
    Json faults = Json::array();
    for (const plugin::DescriptorFault& fault : plugin::descriptor_faults(descriptor, file, options)) {
      faults.push_back(error_json(fault.error));
      faults.back()["check"] = std::string(fault.check);
    }
    out["faults"] = std::move(faults);
    const auto is_unreadable = [](const Json& fault) {
      return fault.at("check").get<std::string>() == plugin::kAbiCheck;
    };
    if (std::ranges::any_of(out.at("faults"), is_unreadable)) return plugin::pack(out);
    out["facts"] = {{"abi", text("{}.{}", descriptor->abi_major, descriptor->abi_minor)},
                    {"toolchain", text_of(descriptor->toolchain)},
                    {"kind", text_of(descriptor->kind)},
                    {"interface", descriptor->interface_version},
                    {"name", text_of(descriptor->name)},
                    {"version", text_of(descriptor->version)},
                    {"options", options.size()}};
  } catch (const Error& error) {
    out["error"] = error_json(error);
  }
  return plugin::pack(out);
}

/// In a child, for a descriptor without faults but perhaps its name.
std::string created_facts(const fs::path& file) {
  plugin::Library library{file, plugin::unchecked_descriptor(file), {}};
  plugin::descriptor_faults(library.descriptor, file, library.options);
  const plugin::TrialObject tried = plugin::try_object(library);
  Json out = {{"unset", tried.unset}};
  if (tried.error) out["error"] = error_json(*tried.error);
  return plugin::pack(out);
}

/// The changes of the interface since the version that the plugin was built for.
std::vector<std::string> changes_since(const std::string& kind, std::uint32_t version) {
  const plugin::PluginKind* const known = plugin::find_plugin_kind(kind);
  std::vector<std::string> out;
  if (!known || version >= known->version) return out;
  for (const InterfaceChange& change : interface_changes(kind, version, known->version))
    out.push_back(text("{} {}: {}", kind, change.version, change.text));
  if (!out.empty()) out.insert(out.begin(), "what changed (docs/plugins/changelog.md):");
  return out;
}

/// The text of a check of the descriptor that found no fault.
std::string ok_text(std::string_view check, const Json& facts) {
  if (check == plugin::kAbiCheck) return facts.at("abi");
  if (check == plugin::kToolchainCheck) return facts.at("toolchain");
  if (check == plugin::kInterfaceCheck)
    return text("{}, version {}", facts.at("kind").get<std::string>(), facts.at("interface").get<std::uint32_t>());
  if (check == plugin::kNameCheck) return facts.at("name");
  if (check == plugin::kContentsCheck) return text("version {}", facts.at("version").get<std::string>());
  return text("{} declared", facts.at("options").get<std::size_t>());
}

void add_faults(std::string_view name, const Json& loaded, Diagnosis& out) {
  for (const Json& fault : loaded.at("faults")) {
    if (fault.at("check").get<std::string>() != name) continue;
    Check check = problem_of(name, fault);
    if (name == plugin::kInterfaceCheck)
      check.details = changes_since(loaded.at("facts").at("kind"), loaded.at("facts").at("interface"));
    out.checks.push_back(std::move(check));
  }
}

/// The toolchain of the note has its check already: that of the descriptor follows only if it differs.
void add_descriptor_checks(const Json& loaded, Diagnosis& out) {
  const bool is_readable = loaded.contains("facts");
  for (const std::string_view name : kDescriptorChecks) {
    const bool is_done = std::ranges::any_of(out.checks, [name](const Check& check) { return check.name == name; });
    const std::size_t before = out.checks.size();
    add_faults(name, loaded, out);
    if (out.checks.size() > before || (is_done && name == plugin::kToolchainCheck)) continue;
    if (is_readable) {
      out.checks.push_back({std::string(name), Outcome::ok, ok_text(name, loaded.at("facts"))});
    } else {
      skip(name, "the descriptor cannot be read", out);
    }
  }
}

/// A plugin that ended or blocked its process.
Check failed_call(const plugin::ProbeFailure& failure, const fs::path& file) {
  const std::string_view name = failure.call == "its library initializer" ? "load"
                                : failure.call == "its entry function"    ? kEntryCheck
                                : failure.call == "its descriptor"        ? plugin::kContentsCheck
                                                                          : kObjectCheck;
  return {std::string(name), Outcome::problem, failure.reason(), {}, failure.hint(file)};
}

void check_object(const Json& loaded, const plugin::CallLimits& limits, Diagnosis& out) {
  const Json& faults = loaded.at("faults");
  const bool is_usable = std::ranges::all_of(
      faults, [](const Json& fault) { return fault.at("check").get<std::string>() == plugin::kNameCheck; });
  if (!is_usable || !loaded.contains("facts") || loaded.at("facts").at("name").get<std::string>().empty())
    return skip(kObjectCheck, "its descriptor has a problem", out);
  const fs::path file = out.file;
  const plugin::ProbeResult probed =
      plugin::run_probe([file] { return created_facts(file); }, plugin::ProbeOutput::captured, limits);
  if (probed.failure) {
    out.checks.push_back(failed_call(*probed.failure, file));
    return;
  }
  const Json created = plugin::unpack(probed.output);
  if (!created.contains("error")) {
    out.checks.push_back({std::string(kObjectCheck), Outcome::ok, "created with the default options, and destroyed"});
    return;
  }
  Check check = problem_of(kObjectCheck, created.at("error"));
  const auto unset = created.at("unset").get<std::vector<std::string>>();
  if (!unset.empty() && !plugin::is_c(loaded.at("facts").at("toolchain").get<std::string>())) {
    check.outcome = Outcome::note;
    for (const std::string& option : unset) check.details.push_back(text("option {} has no default", option));
    check.next = "triax check RUN.toml creates it with the options of a run";
  }
  out.checks.push_back(std::move(check));
}

/// Why the dynamic linker refuses the library. Its own message is shown only if nothing that is missing explains it.
void add_link_faults(const plugin::ElfFile& elf, const Json& error, Diagnosis& out) {
  std::vector<Check> faults = link_faults(out.file, elf, linker_paths());
  const bool is_explained = !faults.empty();
  std::ranges::move(faults, std::back_inserter(out.checks));
  if (is_explained) {
    skip("load", "see the problems above", out);
  } else {
    out.checks.push_back(problem_of("load", error));
  }
}

} // namespace

void check_loading(const plugin::ElfFile& elf, const plugin::CallLimits& limits, Diagnosis& out) {
  if (has_problem(out, plugin::kToolchainCheck) || has_problem(out, "core")) {
    const std::string reason = "a library of another toolchain or core is not loaded";
    skip("load", reason, out);
    return skip_after_load(reason, out);
  }
  const fs::path file = out.file;
  const bool has_entry = plugin::exports(file, TRIAX_ENTRY_NAME);
  const plugin::ProbeResult probed = plugin::run_probe([file, has_entry] { return loaded_facts(file, has_entry); },
                                                       plugin::ProbeOutput::captured, limits);
  const Json loaded = probed.failure ? Json() : plugin::unpack(probed.output);
  const bool is_linked = probed.failure || loaded.contains("loads");
  if (!is_linked) {
    add_link_faults(elf, loaded.at("error"), out);
    return skip_after_load("it is not loaded", out);
  }
  out.checks.push_back({"libraries", Outcome::ok, text("{} needed, all found", elf.needed.size())});
  out.checks.push_back({"symbols", Outcome::ok, "all defined"});
  const std::optional<Check> failed = probed.failure ? std::optional(failed_call(*probed.failure, file)) : std::nullopt;
  if (failed && failed->name == "load") {
    out.checks.push_back(*failed);
    return skip_after_load("it is not loaded", out);
  }
  out.checks.push_back({"load", Outcome::ok, "its initializers return"});
  if (failed) {
    out.checks.push_back(*failed);
    return skip_descriptor("the descriptor cannot be read", out);
  }
  if (loaded.contains("error")) { // the entry function threw it
    out.checks.push_back(problem_of(kEntryCheck, loaded.at("error")));
    return skip_descriptor("the descriptor cannot be read", out);
  }
  if (!has_entry) return skip_after_load("it has no entry function", out);
  out.checks.push_back({std::string(kEntryCheck), Outcome::ok, TRIAX_ENTRY_NAME "() returns"});
  add_descriptor_checks(loaded, out);
  check_object(loaded, limits, out);
}

} // namespace triax::doctor
