// SPDX-License-Identifier: Apache-2.0
#include "train/comm_refusals.hpp"

#include <algorithm>

#include "triax/text.hpp"

namespace triax::train {

namespace {

constexpr std::string_view kCommTable = "comm";

/// "data axis", "data, pipeline and tensor axes"
std::string axes_text(const std::vector<std::string>& axes) {
  std::string out;
  for (std::size_t i = 0; i < axes.size(); ++i) {
    if (i > 0) out += i + 1 < axes.size() ? ", " : " and ";
    out += axes[i];
  }
  return out + (axes.size() == 1 ? " axis" : " axes");
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::ranges::find(list, text) == list.end()) list.push_back(text);
}

} // namespace

void CommRefusals::add(const Refusal& reason, const config::PluginChoice& choice,
                       const std::vector<std::string>& axes) {
  auto same = std::ranges::find(entries_, reason, &Entry::reason);
  if (same == entries_.end()) same = entries_.insert(entries_.end(), {reason, {}});
  auto named = std::ranges::find(same->tables, choice.named_in, &Table::named_in);
  if (named == same->tables.end()) named = same->tables.insert(named, {choice.named_in, choice.name, {}, {}});
  named->tables.push_back(choice.table);
  named->axes.insert(named->axes.end(), axes.begin(), axes.end());
  std::ranges::sort(named->axes);
}

/// A communicator does not know its table, and names an option "comm.NAME". A table that inherits its plugin has the
/// options of [comm] that it does not set. Names that are not keys of the run are left out: they have no position.
std::vector<std::string> CommRefusals::keys_of(const Entry& entry) const {
  std::vector<std::string> out;
  for (const std::string& key : entry.reason.keys) {
    if (!key.starts_with(text("{}.", kCommTable))) {
      add_once(out, key);
      continue;
    }
    for (const Table& named : entry.tables)
      for (const std::string& table : named.tables)
        for (const std::string& owner : {table, named.named_in}) {
          const std::string full = owner + key.substr(kCommTable.size());
          if (!run_.values.contains(full)) continue;
          add_once(out, full);
          break;
        }
  }
  return out;
}

Refusals CommRefusals::list(std::string_view before, const std::vector<std::string>& keys) const {
  Refusals out;
  for (const Entry& entry : entries_) {
    Refusal refusal = entry.reason;
    refusal.keys = keys_of(entry);
    refusal.keys.insert(refusal.keys.end(), keys.begin(), keys.end());
    std::string tables; // "comm.plugin "comm-ucx" for the data and pipeline axes, comm.tensor.plugin ..."
    for (const Table& named : entry.tables) {
      refusal.keys.push_back(named.named_in + ".plugin");
      tables += tables.empty() ? "" : ", ";
      tables += text("{}.plugin \"{}\" for the {}", named.named_in, named.plugin, axes_text(named.axes));
    }
    refusal.message = text("{}{}: {}", before, tables, entry.reason.message);
    out.add(std::move(refusal));
  }
  return out;
}

} // namespace triax::train
