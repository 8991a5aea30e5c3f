2:  ldxr    {fresh:w}, [{word}]
    sub     {fresh:w}, {fresh:w}, {step}
    stxr    {failed:w}, {fresh:w}, [{word}]
    cbnz    {failed:w}, 2b
