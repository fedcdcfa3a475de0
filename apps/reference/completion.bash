# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Completes the command line of triax in bash: subcommands, flags, values, plugins and keys of a run. The rows are made
# from the program's own flags when triax is built.

# _triax_row KIND COMMAND [FLAG]: sets `row` to the words of this row; fails if it does not exist.
_triax_row() {
  case "$*" in
@ROWS@
    *) return 1 ;;
  esac
}

# _triax_plugins PREFIX: the plugins that triax finds, by the names of their files.
_triax_plugins() {
  local program folder
  local -a environment
  program=$(realpath -- "$(type -P -- "${words[0]}")" 2> /dev/null)
  IFS=: read -ra environment <<< "${TRIAX_PLUGIN_PATH:-}"
  for folder in "${folders[@]}" "${environment[@]}" "${program%/*}/../lib/triax/plugins"; do
    compgen -G "$folder/$1*.so"
  done | sed 's|.*/||; s|\.so$||'
}

# _triax_files ENDING VALUE: files with the ending, and folders.
_triax_files() {
  compgen -d -- "$2"
  if [[ -n $1 ]]; then compgen -f -X "!*$1" -- "$2"; else compgen -f -- "$2"; fi | while read -r file; do
    [[ -d $file ]] || printf '%s\n' "$file"
  done
}

# _triax_offer BEFORE VALUE: offers the words of `row` that begin with VALUE, with BEFORE in front of each.
_triax_offer() {
  local before=$1 value=$2 word
  local -a found=() source=("${row[@]}") row=()
  for word in "${source[@]}"; do
    case $word in
      @file*) compopt -o filenames; mapfile -t -O "${#found[@]}" found < <(_triax_files "${word#@file}" "$value") ;;
      @folder) compopt -o filenames; mapfile -t -O "${#found[@]}" found < <(compgen -d -- "$value") ;;
      @plugin*) mapfile -t -O "${#found[@]}" found < <(_triax_plugins "${word#@plugin}") ;;
      @key)
        if [[ $value == *=* ]]; then
          _triax_row key "${value%%=*}" && _triax_offer "$before${value%%=*}=" "${value#*=}"
        else
          compopt -o nospace
          _triax_row keys && found+=("${row[@]/%/=}")
        fi
        ;;
      *) found+=("$word") ;;
    esac
  done
  for word in "${found[@]}"; do
    [[ $word != "$value"* ]] || COMPREPLY+=("$before$word")
  done
}

# Sets `words`: bash splits the line at = and :, and this joins the parts again.
_triax_join_words() {
  local i
  for ((i = 0; i <= COMP_CWORD; i++)); do
    if ((i > 1)) && [[ ${COMP_WORDS[i]} =~ ^[=:]+$ || ${COMP_WORDS[i - 1]} =~ ^[=:]+$ ]]; then
      words[-1]+=${COMP_WORDS[i]}
    else
      words+=("${COMP_WORDS[i]}")
    fi
  done
}

# Reads the words before the current one: sets `command`, `folders` of --path, and `flag`, whose value comes next.
# `several`: the value may also be missing.
_triax_read_words() {
  local word
  for word in "${words[@]:1:${#words[@]}-2}"; do
    if [[ -n $flag && ( -z $several || $word != -* ) ]]; then
      [[ $flag != --path ]] || folders+=("$word")
      if _triax_row several "$command" "$flag"; then several=yes; else flag=; fi
      continue
    fi
    flag='' several=''
    if [[ $word == -* ]]; then
      ! _triax_row value "$command" "$word" || flag=$word
    elif _triax_row verbs "$command" && [[ " ${row[*]} " == *" $word "* ]]; then
      command+=" $word"
    fi
  done
}

_triax() {
  local command=triax flag='' several='' current kept='' breaks
  local -a words=() folders=() row=()
  COMPREPLY=()
  _triax_join_words
  _triax_read_words
  current=${words[-1]}
  current=${current//\\/} current=${current#[\"\']}
  if [[ -n $flag && ( -z $several || $current != -* ) ]]; then
    _triax_row value "$command" "$flag" && _triax_offer '' "$current"
  elif [[ $current == --*=* ]]; then
    _triax_row value "$command" "${current%%=*}" && _triax_offer "${current%%=*}=" "${current#*=}"
  elif [[ $current == -* ]]; then
    _triax_row flags "$command" && _triax_offer '' "$current"
  else
    { _triax_row verbs "$command" || _triax_row argument "$command"; } && _triax_offer '' "$current"
  fi
  # bash replaces only what follows the last = or :.
  breaks=${COMP_WORDBREAKS//[^=:]/}
  [[ -z $breaks || $current != *["$breaks"]* ]] || kept=${current%"${current##*["$breaks"]}"}
  COMPREPLY=("${COMPREPLY[@]#"$kept"}")
}

complete -F _triax triax
