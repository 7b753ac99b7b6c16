"""Generates manual pages from the output of `--experimental-dump-help`: of `moongate`, moongate.1 and moongate-COMMAND.1
for each command; of another program, one page.

usage: manual.py HELP.json FOLDER VERSION DATE"""

import json
import pathlib
import re
import sys

OPTIONS = [
    ("--version", "Print the version, the commit and compiler of the build, and the versions of the libraries."),
    ("-h, --help", "Print help. After a command, print the help of the command."),
]
EXIT_STATUS = [
    ("0", "The command did what it was asked."),
    ("1", "There is a problem, and it was told."),
    ("2", "Bad usage, or there was nothing to work on."),
]
FILES = [
    ("/etc/moongate", "The configuration of the service. Other commands take --config /etc/moongate."),
    ("/etc/default/moongate", "The environment of the service, such as MOONGATE_CONFIG."),
    ("/var/lib/moongate", "The master key and a SQLite store. Keep a copy of the key apart from the store."),
]


def roff(text):
    """Text escaped for troff, as a line or within a line."""
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    # Allow a long example to break at its commas without a hyphen.
    text = re.sub(r"\S{60,}", lambda found: found[0].replace(",", ",\\:"), text)
    return "\n".join(("\\&" + line) if line.startswith(".") else line for line in text.splitlines())


def bold(text):
    return f"\\fB{roff(text)}\\fR"


def italic(text):
    return f"\\fI{roff(text)}\\fR"


def shown(arguments):
    """The arguments of a command, without the two common options, which only moongate(1) lists."""
    everywhere = {"help", "version"}
    return [
        one
        for one in arguments or []
        if one.get("shouldDisplay", True) and not everywhere & {name["name"] for name in one.get("names") or []}
    ]


def spelling(name):
    return ("--" if name["kind"] == "long" else "-") + name["name"]


def value(argument):
    return argument.get("valueName", "value").upper().replace("-", "_")


def label(argument):
    if argument["kind"] == "positional":
        return italic(value(argument))
    names = ", ".join(bold(spelling(name)) for name in argument["names"])
    return names + (" " + italic(value(argument)) if argument["kind"] == "option" else "")


def usage(argument):
    if argument["kind"] == "positional":
        text = italic(value(argument))
    else:
        text = bold(spelling(argument["preferredName"])) + (
            " " + italic(value(argument)) if argument["kind"] == "option" else ""
        )
    text = f"[{text}]" if argument["isOptional"] else text
    return text + ("..." if argument["isRepeating"] else "")


def explained(argument):
    text = argument.get("abstract", "").rstrip(".")
    values = argument.get("allValues") or argument.get("allValueStrings")
    lines = [roff(text + ".")] if text else []
    if values:
        lines.append("One of " + ", ".join(bold(one) for one in values) + ".")
    if argument.get("defaultValue"):
        lines.append(f"The default is {bold(argument['defaultValue'])}.")
    return "\n".join(lines) or "\\&"


def paragraphs(text):
    return "\n.PP\n".join(roff(part.strip()) for part in text.split("\n\n") if part.strip())


def arguments(command):
    lines = []
    for argument in shown(command.get("arguments")):
        lines += [".TP", label(argument), explained(argument)]
    return lines


def synopsis(words, command):
    parts = " ".join(usage(one) for one in shown(command.get("arguments")))
    if children(command):
        parts = " ".join([italic("COMMAND"), "..."])
    return [".PP", bold(" ".join(words)) + (" " + parts if parts else "")]


def children(command):
    # Skip the library's own help command.
    own = ("help", "Show subcommand help information.")
    return [
        one
        for one in command.get("subcommands") or []
        if (one["commandName"], one.get("abstract")) != own and one.get("shouldDisplay", True)
    ]


def about(command):
    return [paragraphs(text) for text in (command.get("abstract", ""), command.get("discussion") or "") if text]


def below(words, command):
    """The subcommands of a command with their options, at any depth."""
    lines = []
    for child in children(command):
        path = words + [child["commandName"]]
        lines += [f".SS {' '.join(roff(word) for word in path[1:])}"] + synopsis(path, child)
        for text in about(child):
            lines += [".PP", text]
        lines += arguments(child) + below(path, child)
    return lines


def header(name, abstract, version, date):
    return [
        f'.TH "{roff(name.upper())}" "1" "{date}" "Moongate {version}" "Moongate"',
        ".nh",
        ".ad l",
        ".SH NAME",
        f"{roff(name)} \\- {roff(abstract.rstrip('.'))}",
    ]


def table(title, rows):
    lines = [f".SH {title}"]
    for name, text in rows:
        lines += [".TP", bold(name), roff(text)]
    return lines


def page(words, command, version, date):
    lines = (
        header("-".join(words), command.get("abstract", ""), version, date)
        + [".SH SYNOPSIS"]
        + synopsis(words, command)
    )
    lines += [".SH DESCRIPTION"] + "\n.PP\n".join(about(command)).splitlines()
    options = arguments(command)
    lines += [".SH OPTIONS"] + options if options else []
    if children(command):
        lines += [".SH COMMANDS"] + below(words, command)
    lines += table("EXIT STATUS", EXIT_STATUS) + [".SH SEE ALSO", ".BR moongate (1)"]
    return "\n".join(lines) + "\n"


def overview(command, version, date):
    lines = header("moongate", command["abstract"], version, date)
    lines += [
        ".SH SYNOPSIS",
        ".PP",
        f"{bold('moongate')} {italic('COMMAND')} ...",
        ".PP",
        f"{bold('moongate')} {bold('--version')}",
    ]
    lines += [".SH DESCRIPTION"] + "\n.PP\n".join(about(command)).splitlines() + [".SH COMMANDS"]
    for child in children(command):
        lines += [".TP", f".BR {roff('moongate-' + child['commandName'])} (1)", roff(child.get("abstract", ""))]
    lines += table("OPTIONS", OPTIONS) + table("EXIT STATUS", EXIT_STATUS) + table("FILES", FILES)
    names = [f".BR {roff('moongate-' + child['commandName'])} (1)," for child in children(command)]
    return "\n".join(lines + [".SH SEE ALSO"] + names[:-1] + [names[-1].rstrip(",")]) + "\n"


def main(source, folder, version, date):
    command = json.loads(pathlib.Path(source).read_text())["command"]
    target = pathlib.Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    name = command["commandName"]
    if name != "moongate":
        (target / f"{name}.1").write_text(page([name], command, version, date))
        return
    (target / "moongate.1").write_text(overview(command, version, date))
    for child in children(command):
        words = ["moongate", child["commandName"]]
        (target / f"{'-'.join(words)}.1").write_text(page(words, child, version, date))


if __name__ == "__main__":
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    main(*sys.argv[1:])
