# Writes the script that cargo pgrx has generated in an order that is the same in every build: what runs first, the
# functions by their place in the sources, the files of SQL as src/lib.rs lists them, what runs last. Without numbers of
# lines, which change with every line above.
/^\/\* <begin connected objects> \*\/$/ { text = ""; place = ""; skipped = 0; next }
/^\/\* <\/end connected objects> \*\/$/ {
    # Functions that one macro makes have one place.
    if (place == "" && text ~ /CREATE/) { print "no place in the sources: " text > "/dev/stderr"; exit failed = 1 }
    if (place != "" && !skipped) { blocks[place " " text] = text }
    next
}
place == "" && /^-- src\/[^:]+:[0-9]+$/ {
    split($2, part, ":")
    place = sprintf("%s %06d", part[1], part[2])
    text = text "-- " part[1] "\n"
    next
}
/^-- Skipped due to `#\[pgrx\(sql = false\)\]`$/ { skipped = 1 }
{ text = text $0 "\n" }
END {
    if (failed) { exit 1 }
    for (place in blocks) {
        if (place ~ /^src\/lib\.rs /) { files[++file_count] = place } else { functions[++function_count] = place }
    }
    sort(files, file_count)
    sort(functions, function_count)
    print "\\echo Use \"CREATE EXTENSION graph_kernel\" to load this file. \\quit\n"
    print blocks[files[1]]
    for (i = 1; i <= function_count; i++) { print blocks[functions[i]] }
    for (i = 2; i <= file_count; i++) { print blocks[files[i]] }
}
function sort(places, count,    i, j, moved) {
    for (i = 2; i <= count; i++) {
        moved = places[i]
        for (j = i - 1; j > 0 && places[j] > moved; j--) { places[j + 1] = places[j] }
        places[j + 1] = moved
    }
}
