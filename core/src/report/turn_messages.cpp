// SPDX-License-Identifier: Apache-2.0
#include "report/turn_messages.hpp"

#include <nlohmann/json.hpp>

#include "triax/error.hpp"
#include "triax/text.hpp"

namespace triax::report {

namespace {

using Message = nlohmann::ordered_json;

/// Calls `read` with the object of a line.
template <class Read>
auto read_message(std::string_view line, const Read& read) {
  try {
    return read(Message::parse(line));
  } catch (const Message::exception& error) {
    throw Error(text("\"{}\" is not a message of a comparison: {}", line.substr(0, 80), error.what()), "comparison");
  }
}

Message to_message(const GroupTraffic& of) {
  return {{"axis", of.group},
          {"plugin", of.plugin},
          {"ops", of.ops},
          {"bytes_out", of.bytes_out},
          {"bytes_in", of.bytes_in}};
}

PluginFile plugin_of(const Message& from) {
  return {from.at("role").get<std::string>(), from.at("name").get<std::string>(), from.at("version").get<std::string>(),
          from.at("file").get<std::string>()};
}

GroupTraffic traffic_of(const Message& from) {
  return {from.at("axis").get<std::string>(), from.at("plugin").get<std::string>(), from.at("ops").get<std::uint64_t>(),
          from.at("bytes_out").get<std::uint64_t>(), from.at("bytes_in").get<std::uint64_t>()};
}

} // namespace

std::string to_line(const WaitingRank& rank) {
  Message out = {{"rank", rank.rank},
                 {"process", rank.process},
                 {"next_step", rank.next_step},
                 {"on_host", rank.on_host},
                 {"memory_bytes", rank.memory_bytes}};
  out["tokens_per_sample"] = rank.tokens_per_sample;
  out["traffic"] = Message::array();
  for (const GroupTraffic& of : rank.traffic) out["traffic"].push_back(to_message(of));
  out["plugins"] = Message::array();
  for (const PluginFile& of : rank.plugins)
    out["plugins"].push_back({{"role", of.role}, {"name", of.name}, {"version", of.version}, {"file", of.file}});
  return out.dump(-1, ' ', false, Message::error_handler_t::replace);
}

WaitingRank read_waiting_rank(std::string_view line) {
  return read_message(line, [](const Message& from) {
    WaitingRank out;
    out.rank = from.at("rank").get<int>();
    out.process = from.at("process").get<std::int64_t>();
    out.next_step = from.at("next_step").get<std::int64_t>();
    out.on_host = from.at("on_host").get<bool>();
    out.memory_bytes = from.at("memory_bytes").get<std::uint64_t>();
    out.tokens_per_sample = from.at("tokens_per_sample").get<std::int64_t>();
    for (const Message& of : from.at("traffic")) out.traffic.push_back(traffic_of(of));
    for (const Message& of : from.at("plugins")) out.plugins.push_back(plugin_of(of));
    return out;
  });
}

std::string to_line(const Turn& turn) {
  return Message{{"until", turn.until}, {"timeline", turn.timeline}}.dump();
}

Turn read_turn(std::string_view line) {
  return read_message(line, [](const Message& from) {
    return Turn{from.at("until").get<std::int64_t>(), from.at("timeline").get<std::int64_t>()};
  });
}

} // namespace triax::report
