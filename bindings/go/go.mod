module kvartet

go 1.19
