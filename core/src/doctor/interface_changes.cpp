// SPDX-License-Identifier: Apache-2.0
#include "doctor/interface_changes.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include "interface_changelog.hpp" // generated

namespace triax::doctor {

namespace {

constexpr std::string_view kHeading = "### ", kItem = "- ", kContinued = "  ";

/// The version of `kind` in "scheduler 2, model 4".
std::optional<std::uint32_t> version_in(std::string_view heading, std::string_view kind) {
  while (!heading.empty()) {
    std::string_view part = heading.substr(0, heading.find(", "));
    heading.remove_prefix(std::min(heading.size(), part.size() + 2));
    if (!part.starts_with(kind) || part.size() <= kind.size() + 1 || part[kind.size()] != ' ') continue;
    part.remove_prefix(kind.size() + 1);
    std::uint32_t version = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), version);
    if (error == std::errc() && end == part.data() + part.size()) return version;
  }
  return std::nullopt;
}

std::string first_sentence(const std::string& item) {
  const std::size_t end = item.find(". ");
  return end == std::string::npos ? item : item.substr(0, end + 1);
}

} // namespace

std::vector<InterfaceChange> interface_changes(std::string_view page, std::string_view kind, std::uint32_t from,
                                               std::uint32_t to) {
  std::vector<InterfaceChange> out;
  std::optional<std::uint32_t> version; // of the current heading, if it is of interest
  std::string item;
  const auto finish = [&] {
    if (version && !item.empty()) out.push_back({*version, first_sentence(item)});
    item.clear();
  };
  while (!page.empty()) {
    const std::string_view line = page.substr(0, page.find('\n'));
    page.remove_prefix(std::min(page.size(), line.size() + 1));
    if (line.starts_with("#")) {
      finish();
      version = line.starts_with(kHeading) ? version_in(line.substr(kHeading.size()), kind) : std::nullopt;
      if (version && (*version <= from || *version > to)) version.reset();
    } else if (line.starts_with(kItem)) {
      finish();
      item = line.substr(kItem.size());
    } else if (!item.empty() && line.starts_with(kContinued) && !line.starts_with("  |")) {
      item.append(" ").append(line.substr(kContinued.size()));
    } else {
      finish(); // a blank line, or the text between lists
    }
  }
  finish();
  return out;
}

std::vector<InterfaceChange> interface_changes(std::string_view kind, std::uint32_t from, std::uint32_t to) {
  return interface_changes(kInterfaceChangelog, kind, from, to);
}

} // namespace triax::doctor
